import type { IncomingHttpHeaders } from 'node:http';

/** The protocol of the channel, for clients that must name one. */
const PROTOCOL = 'svc.channel';
const BEARER_PROTOCOL = 'svc.bearer.';

/**
 * The credential of a request. A page in a browser cannot set headers of a WebSocket, but it can offer protocols: it offers
 * `svc.channel` and `svc.bearer.<credential>`, and gets the first one.
 */
export function bearerOf(headers: IncomingHttpHeaders): string | undefined {
  if (headers.authorization !== undefined) return headers.authorization;
  const offered = headers['sec-websocket-protocol']?.split(',').map((name) => name.trim()) ?? [];
  const credential = offered.find((name) => name.startsWith(BEARER_PROTOCOL));
  return credential === undefined ? undefined : `Bearer ${credential.slice(BEARER_PROTOCOL.length)}`;
}

/** Never the one that holds the credential. */
export function chooseProtocol(offered: ReadonlySet<string>): string | false {
  return offered.has(PROTOCOL) ? PROTOCOL : false;
}
