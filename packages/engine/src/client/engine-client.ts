import type { Agent, ClientRequest, IncomingMessage } from 'node:http';
import { Readable, type Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { isErrno } from '@svc/contract/errno';
import { PlatformError } from '@svc/contract/errors';
import { request } from '@svc/contract/node-http';
import type {
  CheckSandbox,
  CreateSandbox,
  CreateSnapshot,
  ExplainNetwork,
  LifecycleUpdate,
  LogEntry,
  NetworkExplanation,
  NetworkLogLine,
  NetworkUpdate,
  PoolView,
  ReadLogs,
  ReadNetworkLog,
  RefusedConnections,
  SnapshotView,
  SpaceUser,
  SpaceView,
  SpareProcess,
} from '@svc/contract/orchestrator';
import type {
  Capabilities,
  EngineEvent,
  ReadEvents,
  SandboxMetrics,
  SandboxView,
  StartSandbox,
  StreamLine,
} from './engine-api.ts';
import {
  asError,
  checkAnswer,
  cutOff,
  readLines,
  readText,
  unreachable,
  wholeBody,
} from './engine-answer.ts';
import { createAgent, targetOf, type EngineAddress } from './engine-address.ts';
import { ignoreProgress, query, segment, type OnProgress } from './engine-request.ts';
import { EngineImages } from './engine-images.ts';
import { EngineVolumes } from './engine-volumes.ts';

/** For calls that the engine answers from memory. */
const READ_TIMEOUT_MS = 60_000;
/** For calls that do work; longer than the longest grace period of a stop. */
const CHANGE_TIMEOUT_MS = 15 * 60_000;

/**
 * Client of an engine for other processes: HTTP over its unix socket, or over TCP with mutual TLS. Calls fail with the engine's own `PlatformError`, or with
 * `orchestrator_unreachable` when the engine cannot be reached. Every call has a deadline; streams have none. The watchdog ends all
 * of them when the engine hangs (`setAbsence`).
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
  readonly #address: EngineAddress;
  readonly #agent: Agent;
  /** A separate connection, so that it does not queue behind calls. */
  readonly #pulseAgent: Agent;
  /** Each has a connection of its own: of an upload that is refused the rest is not read, and a later request on it would wait. */
  readonly #uploadAgent: Agent;
  readonly #upgradedSockets = new Set<Duplex>();
  #absence: string | null = null;

  /** Connects at the first call. */
  constructor(address: EngineAddress) {
    this.#address = address;
    this.#agent = createAgent(address, { maxSockets: 256 });
    this.#pulseAgent = createAgent(address, { maxSockets: 1 });
    this.#uploadAgent = createAgent(address, { maxSockets: 256, keepAlive: false });
  }

  /** Whether the engine answers; asks it also while it is marked as absent. */
  async pulse(signal?: AbortSignal): Promise<{ readonly pid: number; readonly startTime: string }> {
    const options = { ...targetOf(this.#address), path: '/pulse', agent: this.#pulseAgent };
    const outgoing = request(signal === undefined ? options : { ...options, signal });
    const answered = this.#answer(outgoing);
    outgoing.end();
    const response = await answered;
    const text = await readText(response);
    checkAnswer(response, text);
    return JSON.parse(text) as { pid: number; startTime: string };
  }

  /** A reason marks the engine as hanging: open calls and streams fail now, new ones at once. null clears the mark. */
  setAbsence(reason: string | null): void {
    this.#absence = reason;
    if (reason === null) return;
    this.#agent.destroy();
    this.#uploadAgent.destroy();
    // Destroyed without an error, as when the engine ends: an error event without a listener would end this process.
    for (const socket of this.#upgradedSockets) socket.destroy();
  }

  capabilities(signal?: AbortSignal): Promise<Capabilities> {
    return this.#json('GET', '/capabilities', undefined, signal);
  }

  /** Free and used space of the host's disk. */
  space(signal?: AbortSignal): Promise<SpaceView> {
    return this.#json('GET', '/space', undefined, signal);
  }

  /** Use of the disk by owner, largest first. Stats one file for each of them. */
  spaceUsers(signal?: AbortSignal): Promise<readonly SpaceUser[]> {
    return this.#json('GET', '/space/users', undefined, signal);
  }

  /** The warm sandboxes. */
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

  /** Fails as the same create would, as far as that is known without an image. Makes nothing. */
  async checkSandbox(request: CheckSandbox, signal?: AbortSignal): Promise<void> {
    await this.#json('POST', '/sandboxes/check', request, signal);
  }

  startSandbox(id: string, signal?: AbortSignal, options: StartSandbox = {}): Promise<SandboxView> {
    return this.#json('POST', `/sandboxes/${segment(id)}/start`, options, signal);
  }

  /** Sends SIGTERM, and SIGKILL after `graceMs` (default 10 s). Stopping a stopped sandbox succeeds. */
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

  /** Warm sandboxes of the same kind as this one run the process from now on. */
  async expectProcess(id: string, process: SpareProcess, signal?: AbortSignal): Promise<void> {
    await this.#json('POST', `/sandboxes/${segment(id)}/expect-process`, process, signal);
  }

  /** Absent fields become the default. Takes effect at once, also on existing connections, and for later runs. */
  setNetwork(id: string, network: NetworkUpdate, signal?: AbortSignal): Promise<SandboxView> {
    return this.#json('PUT', `/sandboxes/${segment(id)}/network`, network, signal);
  }

  /** Takes effect at once, and for later runs. */
  setLifecycle(id: string, lifecycle: LifecycleUpdate, signal?: AbortSignal): Promise<SandboxView> {
    return this.#json('PUT', `/sandboxes/${segment(id)}/lifecycle`, lifecycle, signal);
  }

  explainNetwork(request: ExplainNetwork, signal?: AbortSignal): Promise<NetworkExplanation> {
    return this.#json('POST', '/network/explain', request, signal);
  }

  /** Copies the disk of a sandbox that does not run. An aborted call leaves nothing behind. */
  createSnapshot(request: CreateSnapshot, signal?: AbortSignal): Promise<SnapshotView> {
    return this.#json('POST', '/snapshots', request, signal);
  }

  getSnapshot(id: string, signal?: AbortSignal): Promise<SnapshotView> {
    return this.#json('GET', `/snapshots/${segment(id)}`, undefined, signal);
  }

  listSnapshots(signal?: AbortSignal): Promise<readonly SnapshotView[]> {
    return this.#json('GET', '/snapshots', undefined, signal);
  }

  /** Always allowed: sandboxes made from it have their own copies. Removing a missing snapshot succeeds. */
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

  /** The network decisions of a sandbox, oldest first; with `follow` also new ones, until the run ends. */
  networkLog(id: string, options: ReadNetworkLog = {}, signal?: AbortSignal): AsyncIterable<NetworkLogLine> {
    return this.#lines(`/sandboxes/${segment(id)}/network/log?${query(options)}`, signal);
  }

  /** Reports connections that the publisher of a port denied. */
  async noteRefusedConnections(id: string, refused: RefusedConnections, signal?: AbortSignal): Promise<void> {
    await this.#json('POST', `/sandboxes/${segment(id)}/network/log`, refused, signal);
  }

  /** The requested past events, then new ones as they happen, without end. Older engines send all types. */
  events(options: ReadEvents = {}, signal?: AbortSignal): AsyncIterable<EngineEvent> {
    return this.#lines(`/events?${query(options)}`, signal);
  }

  close(): void {
    for (const agent of [this.#agent, this.#pulseAgent, this.#uploadAgent]) agent.destroy();
  }

  async #withProgress<Result>(
    path: string,
    body: object,
    onProgress: OnProgress,
    signal?: AbortSignal,
  ): Promise<Result> {
    let last: StreamLine<Result> | undefined;
    // Drains the body, so that the next call can reuse the connection.
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
    // The engine is trusted and of the same version; its answers match engine-api.ts.
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
    const headers = { 'content-type': 'application/octet-stream' };
    const outgoing = this.#request('PUT', path, headers, signal, this.#uploadAgent);
    const answered = this.#answer(outgoing);
    const refused = new AbortController();
    const sent = pipeline(Readable.from(content), outgoing, { signal: refused.signal });
    // Awaited below; an error while sending also fails the answer, which is read first.
    sent.catch(() => undefined);
    const response = await answered;
    const text = await readText(response);
    // The engine may refuse before it has read everything: its answer is then the error to report, and sending stops.
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
    agent = this.#agent,
  ): ClientRequest {
    if (this.#absence !== null) throw unreachable(new Error(this.#absence), this.#address);
    const options = { ...targetOf(this.#address), method, path, headers, agent };
    return request(signal === undefined ? options : { ...options, signal });
  }

  #answer(outgoing: ClientRequest): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      outgoing.once('response', resolve);
      outgoing.on('error', (error) => reject(unreachable(error, this.#address)));
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
      // `on`, not `once`: a request that is aborted and then loses its connection emits two errors, and an unhandled one ends the process.
      outgoing.on('error', (error) => reject(unreachable(error, this.#address)));
      outgoing.end();
    });
  }
}

/** A kept-alive connection to an engine that has ended since: no byte of the request was delivered. */
function wasNotSent(outgoing: ClientRequest, error: unknown): boolean {
  return outgoing.reusedSocket && PlatformError.is(error) && isErrno(error.cause, 'EPIPE');
}
