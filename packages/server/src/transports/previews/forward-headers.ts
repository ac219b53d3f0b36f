import type { IncomingMessage } from 'node:http';
import { isOurCookie, withoutOurCredentials } from './our-credentials.ts';
import { TOKEN_HEADER } from './preview-token.ts';

/** Hop-by-hop headers (RFC 9110, 7.6.1), beside those that `Connection` names. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Headers that are for this server only, or that it sets itself. */
const NOT_FOR_SANDBOX = new Set([
  'expect',
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-real-ip',
  TOKEN_HEADER,
]);

/** Headers with an effect beyond the host of the answer: on other previews, or on later requests of the browser. */
const NOT_FOR_BROWSER = new Set([
  'alt-svc',
  'clear-site-data',
  'nel',
  'report-to',
  'reporting-endpoints',
  'set-cookie2',
  'strict-transport-security',
]);

/** Headers of a request to a sandbox: names and values alternately, like Node's raw headers. */
export function headersForSandbox(
  request: IncomingMessage,
  { scheme, isUpgrade }: { readonly scheme: string; readonly isUpgrade: boolean },
): string[] {
  const host = request.headers.host ?? '';
  const headers = endToEnd(request).flatMap(([name, value]) => {
    if (NOT_FOR_SANDBOX.has(name.toLowerCase())) return [];
    const kept = withoutOurCredentials(name, value);
    return kept === undefined ? [] : [name, kept];
  });
  const hops = isUpgrade ? ['connection', 'Upgrade', 'upgrade', 'websocket'] : ['connection', 'close'];
  // Keeps a body of unknown length chunked.
  const framing = request.headers['transfer-encoding'] === undefined ? [] : ['transfer-encoding', 'chunked'];
  const port = /:(\d+)$/.exec(host)?.[1] ?? (scheme === 'https' ? '443' : '80');
  return [
    ...headers,
    ...hops,
    ...framing,
    ...Object.entries({
      'x-forwarded-for': request.socket.remoteAddress ?? '',
      'x-forwarded-host': host,
      'x-forwarded-proto': scheme,
      'x-forwarded-port': port,
    }).flat(),
  ];
}

/** Headers of an answer of a sandbox. */
export function headersForBrowser(answer: IncomingMessage): string[] {
  return endToEnd(answer).flatMap(([name, value]) => {
    const lower = name.toLowerCase();
    if (NOT_FOR_BROWSER.has(lower)) return [];
    if (lower !== 'set-cookie') return [name, value];
    const cookie = confineCookie(value);
    return cookie === undefined ? [] : [name, cookie];
  });
}

/** Removes `Domain`, which limits a cookie to this host, and drops cookies with our own names. */
function confineCookie(cookie: string): string | undefined {
  const [pair = '', ...attributes] = cookie.split(';');
  if (isOurCookie(pair.split('=')[0]?.trim() ?? '')) return undefined;
  const kept = attributes.filter((attribute) => !/^\s*domain\s*(=|$)/i.test(attribute));
  return [pair, ...kept].join(';');
}

function endToEnd({ rawHeaders, headers }: IncomingMessage): (readonly [string, string])[] {
  const named = new Set((headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase()));
  const pairs: (readonly [string, string])[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const [name = '', value = ''] = rawHeaders.slice(index, index + 2);
    const lower = name.toLowerCase();
    if (!HOP_BY_HOP.has(lower) && !named.has(lower)) pairs.push([name, value]);
  }
  return pairs;
}
