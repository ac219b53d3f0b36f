import type { ClientRequest, IncomingMessage } from 'node:http';
import { Readable, type Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { isErrno } from '@svc/contract/errno';
import { PlatformError } from '@svc/contract/errors';
import { Agent, request } from '@svc/contract/node-http';
import type {
  Capabilities,
  CheckSandbox,
  CreateSandbox,
  CreateSnapshot,
  EngineEvent,
  ReadEvents,
  LifecycleUpdate,
  LogEntry,
  NetworkUpdate,
  PoolView,
  ReadLogs,
  SandboxMetrics,
  SandboxView,
  SnapshotView,
  SpaceUser,
  SpaceView,
  SpareProcess,
  StartSandbox,
  StreamLine,
} from './engine-api.ts';
import type {
  ExplainNetwork,
  NetworkExplanation,
  NetworkLogLine,
  ReadNetworkLog,
  RefusedVisitors,
} from './network-api.ts';
import {
  asError,
  checkAnswer,
  cutOff,
  readLines,
  readText,
  unreachable,
  wholeBody,
} from './engine-answer.ts';
import { ignoreProgress, query, segment, type OnProgress } from './engine-request.ts';
import { EngineImages } from './engine-images.ts';
import { EngineVolumes } from './engine-volumes.ts';

/** For what the engine answers from memory. */
const READ_TIMEOUT_MS = 60_000;
/** For what it does; longer than the longest grace of a stop. */
const CHANGE_TIMEOUT_MS = 15 * 60_000;

/**
 * Everything the engine does, for a caller in another process: HTTP over its unix socket. Calls fail with the engine's own `PlatformError`;
 * when the engine cannot be reached, with `orchestrator_unreachable`. Every call has a deadline; streams last as long as they like. The
 * watchdog ends all of them when the engine hangs (`setAbsence`).
 */
export class EngineClient {
  readonly images = new EngineImages({
    json: (method, path, body, signal) => this.#json(method, path, body, signal),
    withProgress: (path, body, onProgress, signal) => this.#withProgress(path, body, onProgress, signal),
  });
  readonly volumes = new EngineVolumes({
    json: (method, path, body, signal) => this.#json(method, path, body, signal),
    download: (path, signal) => this.#download(path, signal),
    upload: (path, content, signal) => this.#upload(path, content, signal),
  });
  readonly #socketPath: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 256 });
  /** One connection of its own: it must not wait behind calls. */
  readonly #pulseAgent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #upgradedSockets = new Set<Duplex>();
  #absence: string | null = null;

  constructor({ socketPath }: { readonly socketPath: string }) {
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
    checkAnswer(response, text);
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

  capabilities(signal?: AbortSignal): Promise<Capabilities> {
    return this.#json('GET', '/capabilities', undefined, signal);
  }

  /** How full the disk of the host is. */
  space(signal?: AbortSignal): Promise<SpaceView> {
    return this.#json('GET', '/space', undefined, signal);
  }

  /** And with what, most first. A file is looked at for each of them. */
  spaceUsers(signal?: AbortSignal): Promise<readonly SpaceUser[]> {
    return this.#json('GET', '/space/users', undefined, signal);
  }

  /** The sandboxes that are kept warm. */
  pool(signal?: AbortSignal): Promise<PoolView> {
    return this.#json('GET', '/pool', undefined, signal);
  }

  /** Pulls the image when it is missing, with progress; answers when the sandbox exists (or runs, with `start`). */
  createSandbox(
    request: CreateSandbox,
    onProgress: OnProgress = ignoreProgress,
    signal?: AbortSignal,
  ): Promise<SandboxView> {
    return this.#withProgress('/sandboxes', request, onProgress, signal);
  }

  /** Fails as a create of the same would, for what can be known without an image. Makes nothing. */
  async checkSandbox(request: CheckSandbox, signal?: AbortSignal): Promise<void> {
    await this.#json('POST', '/sandboxes/check', request, signal);
  }

  startSandbox(id: string, signal?: AbortSignal, options: StartSandbox = {}): Promise<SandboxView> {
    return this.#json('POST', `/sandboxes/${segment(id)}/start`, options, signal);
  }

  /** Asks the processes to end, and kills them after `graceMs` (default 10 s). Stopping a stopped sandbox succeeds. */
  stopSandbox(
    id: string,
    options: { readonly graceMs?: number } = {},
    signal?: AbortSignal,
  ): Promise<SandboxView> {
    return this.#json('POST', `/sandboxes/${segment(id)}/stop`, options, signal);
  }

  /** Legal in any state; removing a missing sandbox succeeds. */
  removeSandbox(id: string, signal?: AbortSignal): Promise<Pick<SandboxView, 'sequence'>> {
    return this.#json('DELETE', `/sandboxes/${segment(id)}`, undefined, signal);
  }

  getSandbox(id: string, signal?: AbortSignal): Promise<SandboxView> {
    return this.#json('GET', `/sandboxes/${segment(id)}`, undefined, signal);
  }

  listSandboxes(signal?: AbortSignal): Promise<readonly SandboxView[]> {
    return this.#json('GET', '/sandboxes', undefined, signal);
  }

  /** Sandboxes that are kept warm for callers who ask for one like this have the process from now on. */
  async expectProcess(id: string, process: SpareProcess, signal?: AbortSignal): Promise<void> {
    await this.#json('POST', `/sandboxes/${segment(id)}/expect-process`, process, signal);
  }

  /** What is absent of it becomes the default. Holds at once, also for connections that exist, and for later runs. */
  setNetwork(id: string, network: NetworkUpdate, signal?: AbortSignal): Promise<SandboxView> {
    return this.#json('PUT', `/sandboxes/${segment(id)}/network`, network, signal);
  }

  /** Holds at once, and for later runs. */
  setLifecycle(id: string, lifecycle: LifecycleUpdate, signal?: AbortSignal): Promise<SandboxView> {
    return this.#json('PUT', `/sandboxes/${segment(id)}/lifecycle`, lifecycle, signal);
  }

  explainNetwork(request: ExplainNetwork, signal?: AbortSignal): Promise<NetworkExplanation> {
    return this.#json('POST', '/network/explain', request, signal);
  }

  /** Copies the disk of a sandbox that does not run. A caller that aborts leaves nothing behind. */
  createSnapshot(request: CreateSnapshot, signal?: AbortSignal): Promise<SnapshotView> {
    return this.#json('POST', '/snapshots', request, signal);
  }

  getSnapshot(id: string, signal?: AbortSignal): Promise<SnapshotView> {
    return this.#json('GET', `/snapshots/${segment(id)}`, undefined, signal);
  }

  listSnapshots(signal?: AbortSignal): Promise<readonly SnapshotView[]> {
    return this.#json('GET', '/snapshots', undefined, signal);
  }

  /** Always legal: sandboxes made from it have copies of their own. Removing a missing snapshot succeeds. */
  async removeSnapshot(id: string, signal?: AbortSignal): Promise<void> {
    await this.#json('DELETE', `/snapshots/${segment(id)}`, undefined, signal);
  }

  /** The command channel of a running sandbox: bytes as contract/channel.md defines them, handshake included. */
  openChannel(id: string, signal?: AbortSignal): Promise<Duplex> {
    return this.#upgrade(`/sandboxes/${segment(id)}/channel`, signal);
  }

  metrics(signal?: AbortSignal): Promise<readonly SandboxMetrics[]> {
    return this.#json('GET', '/metrics', undefined, signal);
  }

  logs(id: string, options: ReadLogs = {}, signal?: AbortSignal): AsyncIterable<LogEntry> {
    return this.#lines(`/sandboxes/${segment(id)}/logs?${query(options)}`, signal);
  }

  /** What was decided about the network of a sandbox, oldest first; with `follow` also what comes, until the run is over. */
  networkLog(id: string, options: ReadNetworkLog = {}, signal?: AbortSignal): AsyncIterable<NetworkLogLine> {
    return this.#lines(`/sandboxes/${segment(id)}/network/log?${query(options)}`, signal);
  }

  /** Whoever publishes ports tells whom it did not let in. */
  async noteRefusedVisitors(id: string, refused: RefusedVisitors, signal?: AbortSignal): Promise<void> {
    await this.#json('POST', `/sandboxes/${segment(id)}/network/log`, refused, signal);
  }

  /** Those that are asked for, then new ones as they happen, for ever. An engine of before sends all types. */
  events(options: ReadEvents = {}, signal?: AbortSignal): AsyncIterable<EngineEvent> {
    return this.#lines(`/events?${query(options)}`, signal);
  }

  close(): void {
    this.#agent.destroy();
    this.#pulseAgent.destroy();
  }

  async #withProgress<Result>(
    path: string,
    body: object,
    onProgress: OnProgress,
    signal?: AbortSignal,
  ): Promise<Result> {
    let last: StreamLine<Result> | undefined;
    // Read to its end, so that the next call can use the same connection.
    for await (const line of this.#postLines<StreamLine<Result>>(path, body, signal)) {
      if ('progress' in line) onProgress(line.progress);
      else last = line;
    }
    if (last === undefined || 'progress' in last) throw cutOff();
    if ('error' in last) throw asError(last.error);
    return last.result;
  }

  async #json<Result>(
    method: string,
    path: string,
    body: object | undefined,
    signal?: AbortSignal,
  ): Promise<Result> {
    const timeoutMs = method === 'GET' ? READ_TIMEOUT_MS : CHANGE_TIMEOUT_MS;
    const response = await this.#send(method, path, body, signal, timeoutMs);
    const text = await readText(response);
    checkAnswer(response, text);
    // The engine is trusted and of the same version; its answers are what engine-api.ts says.
    return JSON.parse(text) as Result;
  }

  async *#lines<Line>(path: string, signal?: AbortSignal): AsyncGenerator<Line> {
    yield* readLines<Line>(await this.#send('GET', path, undefined, signal));
  }

  async *#postLines<Line>(path: string, body: object, signal?: AbortSignal): AsyncGenerator<Line> {
    yield* readLines<Line>(await this.#send('POST', path, body, signal, CHANGE_TIMEOUT_MS));
  }

  async #download(path: string, signal?: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const response = await this.#send('GET', path, undefined, signal);
    if (response.statusCode !== 200) checkAnswer(response, await readText(response));
    return wholeBody(response);
  }

  async #upload(path: string, content: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<void> {
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
    checkAnswer(response, text);
    await sent;
  }

  async #upgrade(path: string, signal?: AbortSignal): Promise<Duplex> {
    for (;;) {
      const outgoing = this.#request('GET', path, { connection: 'Upgrade', upgrade: 'svc-channel' }, signal);
      try {
        return await this.#upgraded(outgoing);
      } catch (error) {
        if (!wasNotSent(outgoing, error)) throw error;
      }
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
            checkAnswer(response, text);
            reject(cutOff());
          })
          .catch(reject);
      });
      // Not once: a request that was given up and then loses its connection reports both, and the second must not end the process.
      outgoing.on('error', (error) => reject(unreachable(error)));
      outgoing.end();
    });
  }
}

/** Its connection was kept from an engine that ended since: nothing of the request left this process. */
function wasNotSent(outgoing: ClientRequest, error: unknown): boolean {
  return outgoing.reusedSocket && PlatformError.is(error) && isErrno(error.cause, 'EPIPE');
}
