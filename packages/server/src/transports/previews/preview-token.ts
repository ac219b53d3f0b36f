import type { IncomingHttpHeaders } from 'node:http';
import { TOKEN_NAME } from '../../handlers/previews/preview-place.ts';

export const TOKEN_HEADER = 'x-svc-preview-token';

export interface OfferedTokens {
  /** In the order in which they are tried. */
  readonly header: string | undefined;
  readonly query: string | undefined;
  /** Several: a page of another preview can set cookies of this name for the whole domain, so none is taken for ours. */
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

/** The address as the sandbox gets to see it. Whatever else is in it stays as it was written. */
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
    // Not ours then, because ours need no escapes.
    return text;
  }
}
