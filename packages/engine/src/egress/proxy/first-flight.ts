import type { Socket } from 'node:net';
import { HANDSHAKE_RECORD, readClientHello, type ClientHello } from './client-hello.ts';

/** The protocol of a client, from its first bytes. */
export type FirstFlight =
  | { readonly kind: 'tls'; readonly hello: ClientHello }
  /** HTTP/1, with the host of the first request; null when it has none or several. */
  | { readonly kind: 'http'; readonly host: string | null }
  /** HTTP/2 without TLS, which is not supported. */
  | { readonly kind: 'plainHttp2' }
  | { readonly kind: 'other' }
  /** Begins like TLS or HTTP, but is malformed or too long. */
  | { readonly kind: 'malformed' }
  /** Closed before the protocol was known. */
  | { readonly kind: 'ended' };

/** The longest accepted head of a request, which is longer than any ClientHello. */
const MAX_FLIGHT_BYTES = 64 * 1024;
const METHOD_START = /^[A-Z]{1,20}( |$)/;
/** The HTTP/2 connection preface (RFC 9113, 3.4). */
const HTTP2_LINE = 'PRI * HTTP/2.0';
const REQUEST_LINE = /^[A-Z]{1,20} \S+ HTTP\/1\.[01]$/;

/**
 * Waits until the protocol of the client is known, and pushes all bytes back into the socket. The socket must be paused and unread.
 * There is no deadline: the caller destroys the socket when the client stays silent.
 */
export function readFirstFlight(socket: Socket): Promise<FirstFlight> {
  return new Promise((resolve) => {
    let bytes: Buffer = Buffer.alloc(0);
    const finish = (flight: FirstFlight) => {
      socket.off('readable', onReadable).off('close', onEnd).off('end', onEnd);
      if (bytes.length > 0 && !socket.destroyed) socket.unshift(bytes);
      resolve(flight);
    };
    const onReadable = () => {
      const chunk = socket.read() as Buffer | null; // No encoding is set.
      if (chunk === null) return;
      bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
      const flight = classify(bytes);
      if (flight !== null) finish(flight);
      else if (bytes.length > MAX_FLIGHT_BYTES) finish({ kind: 'malformed' });
    };
    const onEnd = () => finish({ kind: 'ended' });
    socket.on('readable', onReadable).once('close', onEnd).once('end', onEnd);
    if (socket.destroyed) onEnd();
  });
}

/** Null while more bytes are needed. */
export function classify(bytes: Buffer): FirstFlight | null {
  if (bytes.length === 0) return null;
  if (bytes[0] !== HANDSHAKE_RECORD) return classifyText(bytes);
  const read = readClientHello(bytes);
  if (read.kind === 'incomplete') return null;
  return read.kind === 'hello' ? { kind: 'tls', hello: read.hello } : { kind: 'malformed' };
}

function classifyText(bytes: Buffer): FirstFlight | null {
  if (!METHOD_START.test(bytes.toString('latin1', 0, 21))) return { kind: 'other' };
  const text = bytes.toString('latin1');
  const lineEnd = text.indexOf('\n');
  if (lineEnd < 0) return null;
  const line = text.slice(0, lineEnd).replace(/\r$/, '');
  if (line === HTTP2_LINE) return { kind: 'plainHttp2' };
  if (!REQUEST_LINE.test(line)) return { kind: 'other' };
  const headEnd = /\r?\n\r?\n/.exec(text);
  if (headEnd === null) return null;
  const hosts = text
    .slice(lineEnd + 1, headEnd.index)
    .split('\n')
    .filter((line) => /^host[ \t]*:/i.test(line))
    .map((line) => line.slice(line.indexOf(':') + 1).trim());
  const [host, ...others] = hosts;
  return { kind: 'http', host: host === undefined || others.length > 0 ? null : host.toLowerCase() };
}
