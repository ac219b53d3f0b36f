import { ALL_NAMESPACES, PlatformError } from '@svc/contract';
import type { IncomingHttpHeaders } from 'node:http';
import type { Caller } from './caller.ts';

/** @throws PlatformError `invalid_api_key` when the request carries no valid credential. */
export type Authenticate = (headers: IncomingHttpHeaders) => Promise<Caller>;

/** Judges a key by its value. @throws PlatformError `invalid_api_key` */
export type VerifyKey = (key: string) => Promise<Pick<Caller, 'namespace' | 'apiKey'>>;

export const AUTHENTICATION_REQUIRED = 'Authentication required';

/** Asks for a key in `Authorization` or `Proxy-Authorization`, as `Bearer <key>` or bare. */
export function authenticateWithKeys(verifyKey: VerifyKey): Authenticate {
  return async (headers) => {
    const key = credentialOf(headers.authorization) ?? credentialOf(headers['proxy-authorization']);
    if (key === undefined) throw new PlatformError('invalid_api_key', AUTHENTICATION_REQUIRED);
    return { kind: 'key', ...(await verifyKey(key)) };
  };
}

/** Development mode: each client that can connect may call every operation. */
export const authenticateAsDeveloper: Authenticate = async () =>
  await Promise.resolve({ kind: 'developer', namespace: ALL_NAMESPACES });

function credentialOf(header: string | undefined): string | undefined {
  const key = header?.replace(/^Bearer +/i, '').trim();
  return key === undefined || key === '' ? undefined : key;
}
