import { ALL_NAMESPACES, nameProblem, PlatformError } from '@svc/contract';
import { JOSEError, JWTExpired } from 'jose/errors';
import { SignJWT } from 'jose/jwt/sign';
import { jwtVerify } from 'jose/jwt/verify';
import { AUTHENTICATION_REQUIRED } from './authenticate.ts';
import { rememberVerified } from './remember-verified.ts';

const PREFIX = 'svc_';
const ALGORITHM = 'HS256';
const CLOCK_LEEWAY_SECONDS = 5;
const NAMESPACE_CLAIM = 'namespace';

export interface KeyClaims {
  /** One namespace, or `*` for all. */
  readonly namespace: string;
  readonly createdAt: Date;
  /** Null: never. */
  readonly expiresAt: Date | null;
}

/** A key is a prefix and a JWT (RFC 7519) signed with the server's signing key. */
export async function signKey(signingKey: Uint8Array, claims: KeyClaims): Promise<string> {
  const jwt = new SignJWT({ [NAMESPACE_CLAIM]: claims.namespace })
    .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' })
    .setIssuedAt(claims.createdAt);
  if (claims.expiresAt !== null) jwt.setExpirationTime(claims.expiresAt);
  return `${PREFIX}${await jwt.sign(signingKey)}`;
}

/** @throws PlatformError `invalid_api_key`, which tells nothing about the key but that it has expired. */
export const verifyKey = rememberVerified<{ readonly namespace: string }>(async (signingKey, key) => {
  if (!key.startsWith(PREFIX)) throw refused('not_a_key');
  try {
    const { payload } = await jwtVerify(key.slice(PREFIX.length), signingKey, {
      algorithms: [ALGORITHM],
      clockTolerance: CLOCK_LEEWAY_SECONDS,
    });
    const { [NAMESPACE_CLAIM]: namespace, exp } = payload;
    const until = exp === undefined ? null : (exp + CLOCK_LEEWAY_SECONDS) * 1000;
    if (typeof namespace === 'string' && isScope(namespace)) return { claims: { namespace }, until };
  } catch (error) {
    if (error instanceof JWTExpired) throw refused('expired', error);
    if (error instanceof JOSEError) throw refused('invalid', error);
    throw error;
  }
  throw refused('invalid');
});

/** Whether the text has the form of a signed key, of this or another server. Other keys are looked up in the store. */
export function isSignedKey(key: string): boolean {
  return !key.startsWith(PREFIX) || key.includes('.');
}

export function isScope(namespace: string): boolean {
  return namespace === ALL_NAMESPACES || nameProblem('Namespace', namespace) === undefined;
}

function refused(reason: 'not_a_key' | 'expired' | 'invalid', cause?: unknown): PlatformError {
  return new PlatformError('invalid_api_key', AUTHENTICATION_REQUIRED, { details: { reason }, cause });
}
