import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline, type Duplex } from 'node:stream';
import { isAuthorityOf } from '../proxy/authority.ts';
import { endTogether, reset } from '../proxy/end-together.ts';
import { BlockedRequest } from '../secrets/blocked-request.ts';
import { MAX_HELD_BYTES, type BodyPlan, type RequestHead } from '../secrets/request-filter.ts';
import { costOf, endToEnd, MAX_HEAD_BYTES, type Exchange, type HeaderList } from './exchange.ts';
import { holdFirst } from './hold-first.ts';
import { ServerLine } from './server-line.ts';

// Not by `import`: that would load fetch as well, 50 ms of every start.
const { Agent, createServer, request } = process.getBuiltinModule('node:http');

/** Requests that one connection may have sent ahead of their answers. */
const MAX_PIPELINED = 64;

interface Relay {
  readonly exchange: Exchange;
  readonly agent: InstanceType<typeof Agent>;
  pending: number;
  /** Released with the connection, because responses that were never begun emit no end. */
  readonly heads: Set<Disposable>;
  /** Settled when the request before was sent, so that requests keep their order. */
  sent: Promise<void>;
  readonly line: ServerLine;
}

const relays = new WeakMap<Duplex, Relay>();

/**
 * Parses requests with Node's parser, which is strict about lengths and line ends, and serializes each anew, so that a request which
 * two servers could read in two ways never passes. It does not listen; connections are handed to it. The two ends set the timeouts.
 */
const server = createServer({
  maxHeaderSize: MAX_HEAD_BYTES,
  keepAliveTimeout: 0,
  requestTimeout: 0,
  headersTimeout: 0,
  insecureHTTPParser: false,
  // Other upgrades are ignored: the request is forwarded as a plain one.
  shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === 'websocket',
});
server.on('request', (incoming, response) => void answer(incoming, response));
server.on('checkContinue', (incoming, response) => void answer(incoming, response));
server.on('connect', (_, socket: Duplex) => reset(socket));
server.on('upgrade', (incoming, socket: Duplex, ahead: Buffer) => upgrade(incoming, socket, ahead));

/** Forwards the requests of one connection to the other, in order, until either closes. */
export function relayHttp1(exchange: Exchange): void {
  const { client, upstream } = exchange;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const line = new ServerLine(exchange);
  agent.createConnection = (_, done) => line.give(done);
  const heads = new Set<Disposable>();
  const relay = { exchange, agent, line, pending: 0, heads, sent: Promise.resolve() };
  relays.set(client, relay);
  upstream.on('error', () => undefined);
  upstream.once('close', () => {
    if (relay.pending === 0) client.end();
  });
  client.once('close', () => {
    upstream.destroy();
    for (const head of heads) head[Symbol.dispose]();
  });
  server.emit('connection', client);
}

async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  const relay = relayOf(incoming.socket);
  const { client, upstream, held } = relay.exchange;
  // Parsed from the same bytes after the connection was ended.
  if (client.destroyed) return;
  const room = held.heads.reserve(costOf(pairs(incoming.rawHeaders)));
  // Over the limit the connection is reset, because refusals would have to be buffered until the responses before them are sent.
  if (relay.pending >= MAX_PIPELINED || (room === null && relay.pending > 0)) {
    room?.[Symbol.dispose]();
    return reset(client);
  }
  relay.pending += 1;
  if (room !== null) relay.heads.add(room);
  response.once('close', () => {
    relay.pending -= 1;
    if (room !== null) relay.heads.delete(room);
    room?.[Symbol.dispose]();
    if (upstream.destroyed) client.end();
  });
  response.sendDate = false;
  if (room === null) return refuse(response, 503);
  if (!isForHost(incoming, relay.exchange)) return refuse(response, 421);
  const before = relay.sent;
  const { promise, resolve } = Promise.withResolvers<void>();
  relay.sent = promise;
  try {
    await forward(relay, incoming, response, before);
  } catch (error) {
    stop(relay, error);
  } finally {
    resolve();
  }
}

/** False for a request to another host than that of the connection, or one that could be read as such. */
function isForHost(
  { rawHeaders, url = '', httpVersion }: IncomingMessage,
  { host, port, onForeignHost }: Exchange,
): boolean {
  const authorities = pairs(rawHeaders).flatMap(([name, value]) =>
    name.toLowerCase() === 'host' ? [value] : [],
  );
  const [authority = ''] = authorities;
  const target = /^https?:\/\/([^/?#]*)/i.exec(url)?.[1];
  const isPlain = url.startsWith('/') || url === '*' || target !== undefined;
  const isOne = authorities.length === 1 && isAuthorityOf(authority, host, port) && httpVersion !== '0.9';
  if (isOne && isPlain && (target === undefined || isAuthorityOf(target, host, port))) return true;
  onForeignHost(target ?? authority);
  return false;
}

/** Resolves when the head was sent, which happens after `before`. */
async function forward(
  relay: Relay,
  incoming: IncomingMessage,
  response: ServerResponse,
  before: Promise<void>,
): Promise<void> {
  const { exchange, line } = relay;
  const { filter, held } = exchange;
  const original = headOf(incoming);
  const head = filter.head(original);
  const plan = filter.body(original, { isHttp2: false });
  if (plan.kind === 'hold') {
    using room = held.bodies.reserve(Number(incoming.headers['content-length'] ?? 0));
    if (room === null) return refuse(response, 503);
    askForBody(incoming, response);
    const body = plan.rewrite(await whole(incoming));
    await line.turnAfter(before);
    send(relay, { ...head, headers: withLength(withoutExpect(head.headers), body.length) }, response).end(
      body,
    );
    return;
  }
  if (!plan.isHeldFirst) {
    await line.turnAfter(before);
    return pass(relay, { head, original, incoming, response }, [incoming, ...plan.filters()]);
  }
  askForBody(incoming, response);
  const stage = await heldBody(relay, incoming, plan);
  try {
    // Checked before anything is sent.
    trailersOf(relay, original, incoming);
    await line.turnAfter(before);
    if (stage.errored !== null) throw stage.errored;
    const asked = { ...head, headers: withoutExpect(head.headers) };
    pass(relay, { head: asked, original, incoming, response }, [stage]);
  } catch (error) {
    stage.destroy();
    throw error;
  }
}

type Stage = IncomingMessage | Duplex;

interface Asked {
  readonly head: RequestHead;
  readonly original: RequestHead;
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
}

/** Sends the head, and streams the body. */
function pass(relay: Relay, { head, original, incoming, response }: Asked, stages: readonly Stage[]): void {
  const outgoing = send(relay, head, response);
  const finish = () => addTrailers(relay, original, incoming, outgoing);
  if (incoming.readableEnded) finish();
  else incoming.once('end', finish);
  pipeline([...stages, outgoing], (error) => {
    if (error) stop(relay, error);
  });
}

/** Resolves when the request may be sent. */
async function heldBody(
  { exchange: { held } }: Relay,
  incoming: IncomingMessage,
  plan: Extract<BodyPlan, { kind: 'stream' }>,
): Promise<Duplex> {
  const { stage, ready } = holdFirst(held.bodies);
  // An error of the source ends the stage too.
  pipeline([incoming, ...plan.filters(), stage], () => undefined);
  await ready;
  return stage;
}

/** Sends `100 Continue` ourselves, because the server must not see the request yet. */
function askForBody({ headers }: IncomingMessage, response: ServerResponse): void {
  if (headers.expect !== undefined) response.writeContinue();
}

function withoutExpect(headers: HeaderList): HeaderList {
  return headers.filter(([name]) => name.toLowerCase() !== 'expect');
}

/** The original headers without those about the connection, and with one length of the body, as Node parsed it. */
function headOf({ method = '', url = '', rawHeaders, headers }: IncomingMessage): RequestHead {
  const kept = endToEnd(pairs(rawHeaders)).filter(([name]) => name.toLowerCase() !== 'content-length');
  const isChunked = headers['transfer-encoding'] !== undefined;
  const hasBody =
    isChunked || headers['content-length'] !== undefined || !/^(GET|HEAD|DELETE|OPTIONS|TRACE)$/.test(method);
  const framing = isChunked
    ? (['Transfer-Encoding', 'chunked'] as const)
    : (['Content-Length', headers['content-length'] ?? '0'] as const);
  return { method, path: url, headers: hasBody ? [...kept, framing] : kept };
}

function send(relay: Relay, head: RequestHead, response: ServerResponse): ClientRequest {
  const { exchange, agent, line } = relay;
  const outgoing = request({
    agent,
    method: head.method,
    path: head.path,
    headers: head.headers.flat(),
    setDefaultHeaders: false,
    maxHeaderSize: MAX_HEAD_BYTES,
  });
  outgoing.on('continue', () => response.writeContinue());
  outgoing.on('error', () => reset(exchange.client));
  outgoing.once('response', (answered) => {
    const { statusCode = 502, statusMessage, rawHeaders } = answered;
    const chunked =
      answered.headers['transfer-encoding'] === undefined ? [] : ['Transfer-Encoding', 'chunked'];
    if (!outgoing.shouldKeepAlive || answered.headers.connection?.toLowerCase() === 'close')
      response.shouldKeepAlive = false;
    response.writeHead(statusCode, statusMessage, [...endToEnd(pairs(rawHeaders)).flat(), ...chunked]);
    if (line.takeBody({ outgoing, answered, response })) return;
    answered.once('end', () => {
      if (answered.rawTrailers.length > 0) response.addTrailers(tuples(pairs(answered.rawTrailers)));
    });
    pipeline(answered, response, (error) => {
      if (error) reset(exchange.client);
    });
  });
  return outgoing;
}

function addTrailers(
  relay: Relay,
  head: RequestHead,
  incoming: IncomingMessage,
  outgoing: ClientRequest,
): void {
  try {
    outgoing.addTrailers(trailersOf(relay, head, incoming));
  } catch (error) {
    outgoing.destroy();
    stop(relay, error);
  }
}

/** @throws BlockedRequest */
function trailersOf(
  { exchange: { filter } }: Relay,
  head: RequestHead,
  { rawTrailers }: IncomingMessage,
): [string, string][] {
  return rawTrailers.length === 0 ? [] : tuples(filter.trailers(head, pairs(rawTrailers)));
}

function upgrade(incoming: IncomingMessage, socket: Duplex, ahead: Buffer): void {
  const relay = relayOf(socket);
  const { client, filter } = relay.exchange;
  if (!isForHost(incoming, relay.exchange)) return reset(socket);
  try {
    const head = filter.head(headOf(incoming));
    const headers: HeaderList = [...head.headers, ['Connection', 'Upgrade'], ['Upgrade', 'websocket']];
    const outgoing = request({
      agent: relay.agent,
      method: head.method,
      path: head.path,
      headers: headers.flat(),
      setDefaultHeaders: false,
    });
    outgoing.on('error', () => reset(client));
    // The server refused the upgrade: this connection is no longer HTTP for its client, so it ends with the response.
    outgoing.once('response', (answered) => {
      socket.write(startOf(answered, 'Connection: close\r\n'));
      pipeline(answered, socket, () => socket.destroy());
    });
    outgoing.once('upgrade', (answered, upstream: Socket, begun: Buffer) => {
      socket.write(
        Buffer.concat([
          Buffer.from(startOf(answered, 'Connection: Upgrade\r\nUpgrade: websocket\r\n'), 'latin1'),
          begun,
        ]),
      );
      upstream.write(ahead);
      endTogether(socket, upstream);
      socket.pipe(upstream);
      upstream.pipe(socket);
    });
    outgoing.end();
  } catch (error) {
    stop(relay, error);
  }
}

function startOf({ statusCode, statusMessage, rawHeaders }: IncomingMessage, connection: string): string {
  const headers = endToEnd(pairs(rawHeaders)).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${statusCode} ${statusMessage}\r\n${headers.join('')}${connection}\r\n`;
}

/** Destroys both sides at once; the client sees a reset connection. */
function stop({ exchange }: Relay, error: unknown): void {
  reset(exchange.client);
  exchange.upstream.destroy();
  if (error instanceof BlockedRequest) exchange.onViolation(error.violation);
}

function refuse(response: ServerResponse, status: 421 | 503): void {
  response.shouldKeepAlive = false;
  response.writeHead(status, ['Content-Length', '0']).end();
}

async function whole(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > MAX_HELD_BYTES) throw new Error('Longer than announced');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function withLength(headers: HeaderList, length: number): HeaderList {
  return headers.map(
    ([name, value]) => [name, name.toLowerCase() === 'content-length' ? String(length) : value] as const,
  );
}

function relayOf(socket: Duplex): Relay {
  const relay = relays.get(socket);
  if (relay === undefined) throw new Error('A connection has no relay');
  return relay;
}

function pairs(raw: readonly string[]): HeaderList {
  return Array.from(
    { length: raw.length / 2 },
    (_, index) => [raw[index * 2] ?? '', raw[index * 2 + 1] ?? ''] as const,
  );
}

/** Converts headers to the type that Node expects. */
function tuples(headers: HeaderList): [string, string][] {
  return headers.map(([name, value]) => [name, value]);
}
