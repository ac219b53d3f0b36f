import type { IncomingMessage } from 'node:http';
import { PlatformError } from '@svc/contract';
import type { FastifyRequest } from 'fastify';
import { isLoopback } from '../http/loopback.ts';

/**
 * Browsers accept this prefix from secure pages only and bind the cookie to one host: a page on a subdomain, such as
 * a preview, cannot set a session of another user in it.
 */
const SECURE_NAME = '__Host-svc_session';
/** The name on an address without TLS, where browsers refuse the other one. */
const PLAIN_NAME = 'svc_session';
export const SESSION_COOKIES = [SECURE_NAME, PLAIN_NAME] as const;
/** A page of another origin can send this header only after a CORS preflight, which is refused. */
const PAGE_HEADER = 'x-svc-page';
const SAFE_METHODS = new Set(['GET', 'HEAD']);

type Request = Pick<FastifyRequest, 'headers' | 'method'> & {
  readonly raw: Pick<IncomingMessage, 'socket'>;
};

/** The session cookie, unreadable for scripts and not sent by other sites; null: removes it. */
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
 * The session cookie as a value of `Authorization`. For requests with side effects, only from pages of this server:
 * they set a header that other pages cannot set, and the guard has checked `Origin`.
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

/** Whether browsers treat the page as secure: TLS, here or at a proxy, or loopback. */
function isSecurePage({ headers, raw }: Request): boolean {
  if ('encrypted' in raw.socket || headers['x-forwarded-proto'] === 'https') return true;
  const host = (headers.host ?? '').replace(/:\d+$/, '').replace(/^\[|\]$/g, '');
  return isLoopback(host) || host === 'localhost';
}
