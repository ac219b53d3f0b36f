import type { IncomingHttpHeaders } from 'node:http';
import { TOKEN_NAME } from '../../handlers/previews/preview-place.ts';

export const TOKEN_HEADER = 'x-svc-preview-token';

export interface OfferedTokens {
  /** Candidates, in the order in which they are tried. */
  readonly header: string | undefined;
  readonly query: string | undefined;
  /** All cookies of this name, because a page of another preview can set one for the whole domain. */
  readonly cookies: readonly string[];
}

export function readTokens(url: string, headers: IncomingHttpHeaders): OfferedTokens {
  const header = headers[TOKEN_HEADER];
  return {
    header: typeof header === 'string' ? header : undefined,
    query: queryParts(url).find(({ isToken }) => isToken)?.value,
    cookies: cookieParts(headers.cookie).flatMap(({ name, value }) => (name === TOKEN_NAME ? [value] : [])),
  };
}

/** The URL without the token, as forwarded to the sandbox. Other parameters are unchanged. */
export function withoutToken(url: string): string {
  const start = url.indexOf('?');
  if (start < 0) return url;
  const kept = queryParts(url).filter(({ isToken }) => !isToken);
  return url.slice(0, start) + (kept.length === 0 ? '' : `?${kept.map(({ text }) => text).join('&')}`);
}

function queryParts(url: string) {
  const start = url.indexOf('?');
  if (start < 0) return [];
  return url
    .slice(start + 1)
    .split('&')
    .map((text) => {
      const [name = '', ...rest] = text.split('=');
      return { text, isToken: decode(name) === TOKEN_NAME, value: decode(rest.join('=')) };
    });
}

function cookieParts(header: string | undefined) {
  return (header ?? '').split(';').map((part) => {
    const [name = '', ...rest] = part.split('=');
    return { name: name.trim(), value: rest.join('=').trim() };
  });
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // Our tokens need no escapes, so this is not one.
    return text;
  }
}
