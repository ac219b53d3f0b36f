import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isCallerGone } from '../../http/caller-gone.ts';
import { discardBody } from '../../http/rest-failure.ts';
import { enterSandbox, findRunning, requireToken } from '../wire/admit-sandbox.ts';
import { describeE2bFailure, E2bRefusal } from '../wire/e2b-failure.ts';
import type { E2bParts } from '../wire/e2b-parts.ts';
import { readBytes } from '../wire/read-bytes.ts';
import { CONNECT_STATUS, ConnectError, toConnectError } from '../wire/connect-error.ts';
import { EnvdCall } from './envd-call.ts';
import { encodeEnd, encodeEnvelope, readEnvelopes, readObject } from './envelopes.ts';
import * as filesystem from './filesystem.ts';
import type { Message } from './message-fields.ts';
import * as processes from './process.ts';
import * as watch from './watch.ts';

const STREAM_TYPE = 'application/connect+json';
const UNARY_TYPE = 'application/json';

type Unary = (call: EnvdCall, message: Message) => Promise<object>;
type ServerStream = (call: EnvdCall, message: Message) => AsyncGenerator<object, void>;
type Stream = (call: EnvdCall, messages: AsyncIterable<Message>) => AsyncGenerator<object, void>;
type ClientStream = (call: EnvdCall, messages: AsyncIterable<Message>) => Promise<object>;

const UNARY: Readonly<Record<string, Unary>> = {
  '/process.Process/List': processes.list,
  '/process.Process/Update': processes.update,
  '/process.Process/SendInput': processes.sendInput,
  '/process.Process/SendSignal': processes.sendSignal,
  '/process.Process/CloseStdin': processes.closeStdin,
  '/filesystem.Filesystem/Stat': filesystem.stat,
  '/filesystem.Filesystem/ListDir': filesystem.listDir,
  '/filesystem.Filesystem/MakeDir': filesystem.makeDir,
  '/filesystem.Filesystem/Move': filesystem.move,
  '/filesystem.Filesystem/Remove': filesystem.remove,
  '/filesystem.Filesystem/CreateWatcher': watch.createWatcher,
  '/filesystem.Filesystem/GetWatcherEvents': watch.getWatcherEvents,
  '/filesystem.Filesystem/RemoveWatcher': watch.removeWatcher,
};

const SERVER_STREAMS: Readonly<Record<string, ServerStream>> = {
  '/process.Process/Start': processes.start,
  '/process.Process/Connect': processes.connect,
  '/filesystem.Filesystem/WatchDir': watch.watchDir,
};

const CLIENT_STREAMS: Readonly<Record<string, ClientStream>> = {
  '/process.Process/StreamInput': processes.streamInput,
};

/** Processes and files of sandboxes by the Connect protocol with JSON. */
export function registerEnvdRpc(scope: FastifyInstance, parts: E2bParts): void {
  const rpc = new EnvdRpc(parts);
  for (const [url, method] of Object.entries(UNARY))
    scope.post(url, async (request, reply) => await rpc.unary(method, request, reply));
  for (const [url, method] of Object.entries(SERVER_STREAMS))
    scope.post(url, STREAMED, async (request, reply) => await rpc.stream(method, request, reply));
  for (const [url, method] of Object.entries(CLIENT_STREAMS))
    scope.post(url, STREAMED, async (request, reply) => await rpc.clientStream(method, request, reply));
}

/** A stream has no total time limit. */
const STREAMED = { config: { isBodyStreamed: () => true } };

class EnvdRpc {
  readonly #parts: E2bParts;

  constructor(parts: E2bParts) {
    this.#parts = parts;
  }

  async unary(method: Unary, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    try {
      const call = await this.#enter(request, reply);
      requireType(request, UNARY_TYPE);
      const message = readObject(await this.#readAll(request));
      const answer = await method(call, message);
      return await reply.header('content-type', UNARY_TYPE).send(JSON.stringify(answer));
    } catch (error) {
      return this.#refuse(error, request, reply);
    }
  }

  /** A stream that begins with one message of the client. */
  async stream(method: ServerStream, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    return await this.#stream(request, reply, async function* (call, messages) {
      for await (const message of messages) return yield* method(call, message);
      throw new ConnectError('invalid_argument', 'the request has no message');
    });
  }

  /** A stream of the client with one answer at its end. */
  async clientStream(
    method: ClientStream,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply> {
    return await this.#stream(request, reply, async function* (call, messages) {
      yield await method(call, messages);
    });
  }

  async #stream(request: FastifyRequest, reply: FastifyReply, method: Stream): Promise<FastifyReply> {
    try {
      const call = await this.#enter(request, reply);
      requireType(request, STREAM_TYPE);
      reply.raw.once('close', this.#parts.streams.enter(call.of.authority.organization.slug));
      const content = Readable.from(this.#envelopes(method, call, request), { objectMode: false });
      return await reply.header('content-type', STREAM_TYPE).send(content);
    } catch (error) {
      return this.#refuse(error, request, reply);
    }
  }

  /** The messages of an answer, and its end with the failure, if any. */
  async *#envelopes(method: Stream, call: EnvdCall, request: FastifyRequest): AsyncGenerator<Buffer, void> {
    try {
      // The request must stay whole for the answer when the method does not read it to its end.
      const bytes = request.raw.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>;
      const messages = readEnvelopes(bytes, this.#parts.maxBodyBytes);
      for await (const answer of method(call, messages)) yield encodeEnvelope(answer);
      yield encodeEnd(null);
    } catch (error) {
      yield encodeEnd(this.#failureOf(error, request));
    }
  }

  async #enter(request: FastifyRequest, reply: FastifyReply): Promise<EnvdCall> {
    const sandbox = await findRunning(this.#parts, request);
    const authority = await requireToken(this.#parts, request, sandbox, ['envd']);
    const admitted = enterSandbox(this.#parts, { sandbox, authority }, { request, reply });
    return new EnvdCall(this.#parts, admitted, request.headers);
  }

  async #readAll(request: FastifyRequest): Promise<Buffer> {
    return await readBytes(request.raw, this.#parts.maxBodyBytes);
  }

  #failureOf(error: unknown, request: FastifyRequest): Pick<ConnectError, 'code' | 'message'> {
    const known = toConnectError(error);
    if (known !== undefined) return known;
    if (!isCallerGone(error) && !request.raw.destroyed)
      this.#parts.logger.error({ err: error, requestId: request.id, route: request.url }, 'a request failed');
    return new ConnectError(
      'internal',
      `The server met a bug; its log says more under request ${request.id}`,
    );
  }

  /** Before an answer began. What E2B's gateway answers is no error of Connect's. */
  #refuse(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    discardBody(request.raw);
    reply.removeHeader('connection').header('content-type', UNARY_TYPE);
    if (error instanceof E2bRefusal) {
      const { status, body } = describeE2bFailure(error, request.id);
      return reply.code(status).send(JSON.stringify(body));
    }
    const { code, message } = this.#failureOf(error, request);
    return reply.code(CONNECT_STATUS[code]).send(JSON.stringify({ code, message }));
  }
}

function requireType({ headers }: FastifyRequest, type: string): void {
  const given = (headers['content-type'] ?? '').replace(/;.*$/, '').trim().toLowerCase();
  if (given !== type)
    throw new E2bRefusal(415, `The Content-Type must be ${type}, not ${given === '' ? 'absent' : given}`);
}
