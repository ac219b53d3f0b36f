import {
  connect,
  constants,
  performServerHandshake,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type Settings,
} from 'node:http2';
import { pipeline, type Duplex } from 'node:stream';
import { isAuthorityOf } from '../proxy/authority.ts';
import { BlockedRequest } from '../secrets/blocked-request.ts';
import type { RequestHead } from '../secrets/request-filter.ts';
import { holdFirst } from './hold-first.ts';
import { costOf, MAX_HEAD_BYTES, type Exchange, type HeaderList } from './exchange.ts';

/** The limits for both sides: streams, and the size of heads. */
const SETTINGS: Settings = {
  enablePush: false,
  maxConcurrentStreams: 1024,
  maxHeaderListSize: MAX_HEAD_BYTES,
  initialWindowSize: 1 << 20,
};
/**
 * The flow-control window of a connection: the most that is buffered for a side that does not read. Without free memory it stays at the
 * initial value of the protocol.
 */
const CONNECTION_WINDOW_BYTES = 4 << 20;
const OPTIONS = {
  settings: SETTINGS,
  maxHeaderListPairs: 512,
  maxSendHeaderBlockLength: MAX_HEAD_BYTES * 2,
} as const;

/** Forwards the streams of one connection to the other, independently, until either closes. */
export function relayHttp2(exchange: Exchange): void {
  const { client, upstream } = exchange;
  const outward = connect(`https://${exchange.host}:${exchange.port}`, {
    ...OPTIONS,
    createConnection: () => upstream,
  });
  const inward = performServerHandshake(client, OPTIONS);
  const window = exchange.held.windows.reserve(2 * CONNECTION_WINDOW_BYTES);
  if (window !== null) {
    widen(inward);
    outward.once('connect', () => widen(outward));
    inward.once('close', () => window[Symbol.dispose]());
  }
  for (const session of [inward, outward]) session.on('error', () => undefined); // `close` follows.
  inward.once('close', () => outward.destroy());
  // HTTP/2 has no half-open connections: nothing reads responses any more.
  client.once('end', () => inward.destroy());
  outward.once('close', () => inward.close());
  outward.on('goaway', () => inward.goaway());
  inward.on('stream', (stream, headers) => answer(exchange, outward, stream, headers));
}

function answer(
  exchange: Exchange,
  session: ClientHttp2Session,
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
): void {
  stream.on('error', () => undefined);
  const head = headOf(headers);
  if (sizeOf(head) > MAX_HEAD_BYTES) return stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  const room = exchange.held.heads.reserve(costOf(head.headers));
  // The client learns that the request was not processed, and may retry it.
  if (room === null) return stream.close(constants.NGHTTP2_REFUSED_STREAM);
  stream.once('close', () => room[Symbol.dispose]());
  if (!isForHost(headers, exchange)) {
    stream.respond({ ':status': 421 }, { endStream: true });
    return;
  }
  forward(exchange, session, stream, head).catch((error: unknown) => stop(exchange, stream, null, error));
}

function isForHost(headers: IncomingHttpHeaders, { host, port, onForeignHost }: Exchange): boolean {
  const { ':authority': authority, host: header, ':method': method, ':scheme': scheme } = headers;
  const named = [authority, header].filter((value) => value !== undefined);
  const isOne = named.length > 0 && named.every((value) => isAuthorityOf(value, host, port));
  if (isOne && method !== 'CONNECT' && scheme === 'https') return true;
  onForeignHost(authority ?? header ?? '');
  return false;
}

/** Rejects when the request was not sent. */
async function forward(
  exchange: Exchange,
  session: ClientHttp2Session,
  stream: ServerHttp2Stream,
  original: RequestHead,
): Promise<void> {
  const { filter } = exchange;
  const head = toObject(filter.head(original));
  if (stream.endAfterHeaders) {
    passBack(session.request(head, { endStream: true }), stream);
    return;
  }
  let outgoing: ClientHttp2Stream | null = null;
  let trailers: HeaderList = [];
  const stopHere = (error: unknown) => stop(exchange, stream, outgoing, error);
  stream.once('trailers', (late: IncomingHttpHeaders) => {
    try {
      trailers = filter.trailers(original, listOf(late));
    } catch (error) {
      stopHere(error);
    }
  });
  const stages = await bodyOf(exchange, stream, original);
  try {
    if (stream.closed || stream.destroyed) throw new Error('The client has given up');
    outgoing = session.request(head, { endStream: false, waitForTrailers: true });
  } catch (error) {
    for (const stage of stages) if (stage !== stream) stage.destroy();
    throw error;
  }
  const sent = outgoing;
  sent.once('wantTrailers', () => sent.sendTrailers(Object.fromEntries(trailers)));
  passBack(sent, stream);
  pipeline([...stages, sent], (error) => {
    if (error) stopHere(error);
  });
}

/** The source of the body, once the request may be sent. */
async function bodyOf(
  { filter, held }: Exchange,
  stream: ServerHttp2Stream,
  head: RequestHead,
): Promise<readonly Duplex[]> {
  const plan = filter.body(head, { isHttp2: true });
  if (plan.kind === 'hold') throw new Error('Bodies are not rewritten over HTTP/2');
  if (!plan.isHeldFirst) return [stream, ...plan.filters()];
  const { stage, ready } = holdFirst(held.bodies);
  pipeline([stream, ...plan.filters(), stage], () => undefined);
  await ready;
  if (stage.errored !== null) throw stage.errored;
  return [stage];
}

function passBack(outgoing: ClientHttp2Stream, stream: ServerHttp2Stream): void {
  let trailers: OutgoingHttpHeaders = {};
  stream.once('close', () => outgoing.close(stream.rstCode));
  outgoing.once('close', () => {
    if (outgoing.rstCode !== constants.NGHTTP2_NO_ERROR) stream.close(outgoing.rstCode);
  });
  outgoing.on('error', () => undefined);
  outgoing.on('headers', (early: IncomingHttpHeaders) => {
    if (!stream.headersSent && stream.writable) stream.additionalHeaders(early);
  });
  outgoing.once('trailers', (late: IncomingHttpHeaders) => (trailers = late));
  outgoing.once('response', (headers, flags) => {
    if (stream.destroyed || stream.closed) return;
    const endStream = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    stream.respond(headers, { endStream, waitForTrailers: !endStream });
    stream.once('wantTrailers', () => stream.sendTrailers(trailers));
    if (!endStream)
      pipeline(outgoing, stream, (error) => {
        if (error) stream.close(constants.NGHTTP2_CANCEL);
      });
  });
}

/** Ends one request on both sides; other requests of the connection continue. */
function stop(
  { onViolation }: Exchange,
  stream: ServerHttp2Stream,
  outgoing: ClientHttp2Stream | null,
  error: unknown,
): void {
  outgoing?.close(constants.NGHTTP2_CANCEL);
  stream.close(constants.NGHTTP2_CANCEL);
  if (error instanceof BlockedRequest) onViolation(error.violation);
}

function headOf(headers: IncomingHttpHeaders): RequestHead {
  return { method: headers[':method'] ?? '', path: headers[':path'] ?? '', headers: listOf(headers) };
}

function listOf(headers: IncomingHttpHeaders): HeaderList {
  return Object.entries(headers).flatMap(([name, value]) => {
    if (value === undefined) return [];
    return (Array.isArray(value) ? value : [value]).map((each) => [name, each] as const);
  });
}

function toObject({ path, headers }: RequestHead): OutgoingHttpHeaders {
  const object: Record<string, string | string[]> = {};
  for (const [name, value] of headers) {
    const before = object[name];
    object[name] = before === undefined ? value : [before, value].flat();
  }
  return { ...object, ':path': path };
}

function sizeOf({ headers }: RequestHead): number {
  return headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
}

function widen(session: ServerHttp2Session | ClientHttp2Session): void {
  session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
}
