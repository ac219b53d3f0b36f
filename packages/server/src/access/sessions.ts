import { SignJWT } from 'jose/jwt/sign';
import { jwtVerify } from 'jose/jwt/verify';

const ALGORITHM = 'HS256';
const AUDIENCE = 'svc-session';
const DEFAULT_LIFETIME_SECONDS = 12 * 60 * 60;

/** A session acts for a user until it expires. It is no key: its audience tells them apart. */
export async function signSession(
  signingKey: Uint8Array,
  userId: string,
  lifetimeSeconds = DEFAULT_LIFETIME_SECONDS,
): Promise<string> {
  return await new SignJWT({})
    .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' })
    .setSubject(userId)
    .setAudience(AUDIENCE)
    .setIssuedAt()
    .setExpirationTime(Math.floor(Date.now() / 1000) + lifetimeSeconds)
    .sign(signingKey);
}

/** @returns the user's id @throws when it is no session of this server, or has expired */
export async function verifySession(signingKey: Uint8Array, token: string): Promise<string> {
  const { payload } = await jwtVerify(token, signingKey, {
    algorithms: [ALGORITHM],
    audience: AUDIENCE,
    requiredClaims: ['sub', 'exp'],
  });
  return payload.sub ?? '';
}
