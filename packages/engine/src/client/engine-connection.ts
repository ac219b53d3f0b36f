import type { ClientRequest, IncomingMessage } from 'node:http';
import { Readable, type Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { isErrno } from '@svc/contract/errno';
import { isErrorCode, PlatformError } from '@svc/contract/errors';
import { Agent, request } from '@svc/contract/node-http';

/** For what the engine answers from memory. */
const READ_TIMEOUT_MS = 60_000;
/** For what it does; longer than the longest grace of a stop. */
const CHANGE_TIMEOUT_MS = 15 * 60_000;

/**
 * HTTP over the engine's unix socket, with its errors turned back into `PlatformError`. Every call has a deadline; streams last as long as
 * they like. The watchdog ends all of them when the engine hangs (`setAbsence`).
 */
export class EngineConnection {
  readonly #socketPath: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 256 });
  /** One connection of its own: it must not wait behind calls. */
  readonly #pulseAgent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #upgradedSockets = new Set<Duplex>();
  #absence: string | null = null;

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  /** Whether the engine answers at all, also while it is taken for absent. */
  async pulse(signal?: AbortSignal): Promise<{ readonly pid: number; readonly startTime: string }> {
    const options = { socketPath: this.#socketPath, path: '/pulse', agent: this.#pulseAgent };
    const outgoing = request(signal === undefined ? options : { ...options, signal });
    const answered = this.#answer(outgoing);
    outgoing.end();
    const response = await answered;
    const text = await readText(response);
    this.#check(response, text);
    return JSON.parse(text) as { pid: number; startTime: string };
  }

  /** With a reason: the engine hangs. Calls and streams that wait for it fail now, and new ones at once, until it is null again. */
  setAbsence(reason: string | null): void {
    this.#absence = reason;
    if (reason === null) return;
    this.#agent.destroy();
    // As when the engine ends: without an error, which nobody may be listening for.
    for (const socket of this.#upgradedSockets) socket.destroy();
  }

  async json<Result>(
    method: string,
    path: string,
    body: object | undefined,
    signal?: AbortSignal,
  ): Promise<Result> {
    const timeoutMs = method === 'GET' ? READ_TIMEOUT_MS : CHANGE_TIMEOUT_MS;
    const response = await this.#send(method, path, body, signal, timeoutMs);
    const text = await readText(response);
    this.#check(response, text);
    // The engine is trusted and of the same version; its answers are what engine-api.ts says.
    return JSON.parse(text) as Result;
  }

  async *lines<Line>(path: string, signal?: AbortSignal): AsyncGenerator<Line> {
    yield* this.#readLines<Line>(await this.#send('GET', path, undefined, signal));
  }

  async *postLines<Line>(path: string, body: object, signal?: AbortSignal): AsyncGenerator<Line> {
    yield* this.#readLines<Line>(await this.#send('POST', path, body, signal, CHANGE_TIMEOUT_MS));
  }

  async download(path: string, signal?: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const response = await this.#send('GET', path, undefined, signal);
    if (response.statusCode !== 200) this.#check(response, await readText(response));
    return wholeBody(response);
  }

  async upload(path: string, content: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void> {
    const outgoing = this.#request('PUT', path, { 'content-type': 'application/octet-stream' }, signal);
    const answered = this.#answer(outgoing);
    const refused = new AbortController();
    const sent = pipeline(Readable.from(content), outgoing, { signal: refused.signal });
    // Awaited below; whatever breaks the sending breaks the answer first.
    sent.catch(() => undefined);
    const response = await answered;
    const text = await readText(response);
    // The engine may refuse before it has read everything: its answer is then the error to report, and nothing more is sent.
    if (response.statusCode !== 200) refused.abort();
    this.#check(response, text);
    await sent;
  }

  async upgrade(path: string, signal?: AbortSignal): Promise<Duplex> {
    for (;;) {
      const outgoing = this.#request('GET', path, { connection: 'Upgrade', upgrade: 'svc-channel' }, signal);
      try {
        return await this.#upgraded(outgoing);
      } catch (error) {
        if (!wasNotSent(outgoing, error)) throw error;
      }
    }
  }

  asError(error: {
    readonly code: string;
    readonly message: string;
    readonly details: unknown;
  }): PlatformError {
    const code = isErrorCode(error.code) ? error.code : 'internal';
    const details = typeof error.details === 'object' && error.details !== null ? { ...error.details } : {};
    return new PlatformError(code, error.message, { details });
  }

  cutOff(): PlatformError {
    return cutOff(undefined);
  }

  close(): void {
    this.#agent.destroy();
    this.#pulseAgent.destroy();
  }

  async *#readLines<Line>(response: IncomingMessage): AsyncGenerator<Line> {
    if (response.statusCode !== 200) this.#check(response, await readText(response));
    const decoder = new TextDecoder();
    let rest = '';
    for await (const chunk of wholeBody(response)) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) yield JSON.parse(line) as Line;
    }
  }

  async #send(
    method: string,
    path: string,
    body: object | undefined,
    signal?: AbortSignal,
    timeoutMs = 0,
  ): Promise<IncomingMessage> {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers =
      text === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
    for (;;) {
      const outgoing = this.#request(method, path, headers, signal);
      const answered = this.#answer(outgoing);
      if (timeoutMs > 0) {
        const late = new Error(`no answer in ${timeoutMs / 1000} s`);
        outgoing.setTimeout(timeoutMs, () => outgoing.destroy(late));
      }
      outgoing.end(text);
      try {
        return await answered;
      } catch (error) {
        if (!wasNotSent(outgoing, error)) throw error;
      }
    }
  }

  #request(
    method: string,
    path: string,
    headers: Record<string, string | number>,
    signal?: AbortSignal,
  ): ClientRequest {
    if (this.#absence !== null) throw unreachable(new Error(this.#absence));
    const options = { socketPath: this.#socketPath, method, path, headers, agent: this.#agent };
    return request(signal === undefined ? options : { ...options, signal });
  }

  #answer(outgoing: ClientRequest): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      outgoing.once('response', resolve);
      outgoing.on('error', (error) => reject(unreachable(error)));
    });
  }

  #upgraded(outgoing: ClientRequest): Promise<Duplex> {
    return new Promise((resolve, reject) => {
      outgoing.once('upgrade', (_response, socket, head) => {
        if (head.length > 0) socket.unshift(head);
        this.#upgradedSockets.add(socket);
        socket.once('close', () => this.#upgradedSockets.delete(socket));
        resolve(socket);
      });
      outgoing.once('response', (response) => {
        readText(response)
          .then((text) => {
            this.#check(response, text);
            reject(this.cutOff());
          })
          .catch(reject);
      });
      // Not once: a request that was given up and then loses its connection reports both, and the second must not end the process.
      outgoing.on('error', (error) => reject(unreachable(error)));
      outgoing.end();
    });
  }

  #check(response: IncomingMessage, text: string): void {
    if (response.statusCode !== undefined && response.statusCode < 300) return;
    const parsed: unknown = safeParse(text);
    if (isEnvelope(parsed)) throw this.asError(parsed.error);
    throw new PlatformError('internal', `the engine answered ${response.statusCode} without a reason`);
  }
}

/** The body to its end; one that is cut off is an error, never a short answer. */
async function* wholeBody(response: IncomingMessage): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of response) yield chunk as Uint8Array;
  } catch (error) {
    throw error instanceof Error && error.name === 'AbortError' ? error : cutOff(error);
  }
  if (!response.complete) throw cutOff(undefined);
}

async function readText(response: IncomingMessage): Promise<string> {
  return Buffer.concat(await Array.fromAsync(wholeBody(response))).toString('utf8');
}

function cutOff(cause: unknown): PlatformError {
  const message = 'the engine ended the connection before it had answered';
  return new PlatformError('orchestrator_unreachable', message, { cause });
}

/** Its connection was kept from an engine that ended since: nothing of the request left this process. */
function wasNotSent(outgoing: ClientRequest, error: unknown): boolean {
  return outgoing.reusedSocket && PlatformError.is(error) && isErrno(error.cause, 'EPIPE');
}

function unreachable(error: NodeJS.ErrnoException): Error {
  if (error.name === 'AbortError') return error;
  const hint =
    error.code === undefined
      ? `the engine hangs: ${error.message}; see \`svc engine logs\``
      : 'the engine cannot be reached; start it with `svc engine start`';
  return new PlatformError('orchestrator_unreachable', hint, {
    details: { errno: error.code ?? error.message },
    cause: error,
  });
}

function safeParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON: the caller reports the status instead.
    return undefined;
  }
}

function isEnvelope(value: unknown): value is { error: { code: string; message: string; details: unknown } } {
  return (
    typeof value === 'object' &&
    value !== null &&
    'error' in value &&
    typeof value.error === 'object' &&
    value.error !== null
  );
}
