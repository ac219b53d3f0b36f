import type { IncomingMessage } from 'node:http';
import { PlatformError } from '@svc/contract';
import type { FastifyRequest } from 'fastify';
import { isLoopback } from '../http/loopback.ts';

/**
 * Browsers take a name with this prefix only from a secure page and keep it to its one host: no page below the same domain,
 * a preview for one, can plant a session of somebody else's in it.
 */
const SECURE_NAME = '__Host-svc_session';
/** On an address in a network without TLS, where browsers take no other. */
const PLAIN_NAME = 'svc_session';
export const SESSION_COOKIES = [SECURE_NAME, PLAIN_NAME] as const;
/** A page elsewhere cannot send it without being asked for leave, which it does not get. */
const PAGE_HEADER = 'x-svc-page';
const SAFE_METHODS = new Set(['GET', 'HEAD']);

type Request = Pick<FastifyRequest, 'headers' | 'method'> & {
  readonly raw: Pick<IncomingMessage, 'socket'>;
};

/** A cookie that no script can read and no page of another site sends; null: removes it. */
export function sessionCookie(
  request: Request,
  session: { readonly token: string; readonly expiresAt: string } | null,
): string {
  const isSecure = isSecurePage(request);
  const value = `${isSecure ? SECURE_NAME : PLAIN_NAME}=${session?.token ?? ''}`;
  const expires = new Date(session?.expiresAt ?? 0).toUTCString();
  return [
    value,
    'Path=/',
    'HttpOnly',
    'SameSite=Strict',
    `Expires=${expires}`,
    ...(isSecure ? ['Secure'] : []),
  ].join('; ');
}

/**
 * What the cookie of the session would be as `Authorization`. What changes something is taken from our own pages alone: they
 * say so in a header that others cannot set, and the guard has looked at `Origin`.
 */
export function sessionOf(request: Request): string | undefined {
  const name = isSecurePage(request) ? SECURE_NAME : PLAIN_NAME;
  const token = (request.headers.cookie ?? '')
    .split(/; */)
    .find((pair) => pair.startsWith(`${name}=`))
    ?.slice(name.length + 1);
  if (token === undefined || token === '') return undefined;
  if (!SAFE_METHODS.has(request.method) && request.headers[PAGE_HEADER] === undefined) {
    const message = `A request with a session cookie that changes something needs the header ${PAGE_HEADER}`;
    throw new PlatformError('forbidden', message, { details: { header: PAGE_HEADER } });
  }
  return `Bearer ${token}`;
}

/** What a browser counts as secure: TLS, here or at a proxy in front, and this machine itself. */
function isSecurePage({ headers, raw }: Request): boolean {
  if ('encrypted' in raw.socket || headers['x-forwarded-proto'] === 'https') return true;
  const host = (headers.host ?? '').replace(/:\d+$/, '').replace(/^\[|\]$/g, '');
  return isLoopback(host) || host === 'localhost';
}
