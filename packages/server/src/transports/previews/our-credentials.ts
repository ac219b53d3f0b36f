import { decodeJwt } from 'jose/jwt/decode';
import { SESSION_AUDIENCE } from '../../access/sessions.ts';
import { TOKEN_NAME } from '../../handlers/previews/preview-place.ts';
import { BEARER_PROTOCOL } from '../channel/bearer-protocol.ts';
import { SESSION_COOKIES } from '../rest/session-cookie.ts';

/** Prefix of keys, and of tokens of users and previews. */
const PREFIX = /^svc_/i;
export const TRAFFIC_TOKEN_HEADER = 'e2b-traffic-access-token';
const OUR_COOKIES: ReadonlySet<string> = new Set([TOKEN_NAME, ...SESSION_COOKIES]);

export function isOurCookie(name: string): boolean {
  return OUR_COOKIES.has(name);
}

/** Removes credentials of this server from a header; undefined when nothing remains. */
export function withoutOurCredentials(name: string, value: string): string | undefined {
  switch (name.toLowerCase()) {
    case 'cookie':
      return joined(value, ';', '; ', (part) => !isOurCookie(part.split('=')[0]?.trim() ?? ''));
    case 'sec-websocket-protocol':
      return joined(value, ',', ', ', (part) => !part.startsWith(BEARER_PROTOCOL));
    // Of E2B's clients: opens the ports of the sandbox that it would be sent to.
    case TRAFFIC_TOKEN_HEADER:
      return undefined;
    case 'authorization':
    case 'x-api-key':
      return isOurCredential(value) ? undefined : value;
    default:
      return value;
  }
}

function joined(
  value: string,
  separator: string,
  glue: string,
  isKept: (part: string) => boolean,
): string | undefined {
  const parts = value.split(separator).map((part) => part.trim());
  const kept = parts.filter((part) => part !== '' && isKept(part));
  return kept.length === 0 ? undefined : kept.join(glue);
}

/** Also without a scheme, and as the user or the password of `Basic`. */
function isOurCredential(value: string): boolean {
  const [, scheme = '', secret = ''] = /^\s*(?:(bearer|basic)\s+)?(.*?)\s*$/is.exec(value) ?? [];
  if (PREFIX.test(secret)) return true;
  if (scheme.toLowerCase() !== 'basic') return isSession(secret);
  const [user = '', ...password] = Buffer.from(secret, 'base64').toString('latin1').split(':');
  return [user, password.join(':')].some((part) => PREFIX.test(part) || isSession(part));
}

/**
 * Detects a session by its claims, without verification: expired ones, and those of other servers, must not reach the
 * sandbox either.
 */
function isSession(token: string): boolean {
  try {
    return [decodeJwt(token).aud].flat().includes(SESSION_AUDIENCE);
  } catch {
    return false; // Not a session token.
  }
}
