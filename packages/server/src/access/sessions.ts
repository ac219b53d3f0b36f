import { SignJWT } from 'jose/jwt/sign';
import { jwtVerify } from 'jose/jwt/verify';
import { rememberVerified } from './remember-verified.ts';

const ALGORITHM = 'HS256';
export const SESSION_AUDIENCE = 'svc-session';
export const SESSION_MS = 12 * 60 * 60_000;

/**
 * Signs a token with the id of a session in the store, which can end it before it expires. Its audience keeps it from being used as a
 * key.
 */
export async function signSession(
  signingKey: Uint8Array,
  { id, userId, expiresAt }: { readonly id: string; readonly userId: string; readonly expiresAt: string },
): Promise<string> {
  return await new SignJWT({})
    .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' })
    .setSubject(userId)
    .setJti(id)
    .setAudience(SESSION_AUDIENCE)
    .setIssuedAt()
    .setExpirationTime(new Date(expiresAt))
    .sign(signingKey);
}

/** Signs a session of the store as the token that its user sends. */
export type SignSession = (session: Parameters<typeof signSession>[1]) => Promise<string>;

/** @returns the session's id @throws when it is no session of this server, or has expired */
export const verifySession = rememberVerified<string>(async (signingKey, token) => {
  const { payload } = await jwtVerify(token, signingKey, {
    algorithms: [ALGORITHM],
    audience: SESSION_AUDIENCE,
    requiredClaims: ['sub', 'jti', 'exp'],
  });
  return { claims: payload.jti ?? '', until: (payload.exp ?? 0) * 1000 };
});
