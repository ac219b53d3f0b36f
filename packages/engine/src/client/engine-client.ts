import type { Duplex } from 'node:stream';
import type { ImageProgress } from '../images/images.ts';
import type { Explanation } from '../policy/explain.ts';
import type { VolumeEntry, Volume, VolumeUsage } from '../volumes/volumes.ts';
import type {
  BuildDemoImages,
  Capabilities,
  CheckSandbox,
  CreateSandbox,
  CreateSnapshot,
  EngineEvent,
  ExplainNetwork,
  NetworkUpdate,
  HeldImagesView,
  ImageView,
  ImportImage,
  LogEntry,
  PullImage,
  ReadLogs,
  SandboxMetrics,
  SandboxView,
  SnapshotView,
  SpaceView,
  StartSandbox,
  StreamLine,
} from './engine-api.ts';
import { EngineConnection } from './engine-connection.ts';

type OnProgress = (progress: ImageProgress) => void;

/**
 * Everything the engine does, for a caller in another process. Calls fail with the engine's own `PlatformError`;
 * when the engine cannot be reached, with `orchestrator_unreachable`.
 */
export class EngineClient {
  readonly #connection: EngineConnection;

  constructor(options: { readonly socketPath: string }) {
    this.#connection = new EngineConnection(options.socketPath);
  }

  /** Who answers; the quickest question there is. */
  pulse(signal?: AbortSignal): Promise<{ readonly pid: number; readonly startTime: string }> {
    return this.#connection.pulse(signal);
  }

  /** See `EngineConnection.setAbsence`. */
  setAbsence(reason: string | null): void {
    this.#connection.setAbsence(reason);
  }

  capabilities(signal?: AbortSignal): Promise<Capabilities> {
    return this.#connection.json('GET', '/capabilities', undefined, signal);
  }

  /** How full the disk of the host is, and with what. */
  space(signal?: AbortSignal): Promise<SpaceView> {
    return this.#connection.json('GET', '/space', undefined, signal);
  }

  /** Pulls the image when it is missing, with progress; answers when the sandbox exists (or runs, with `start`). */
  createSandbox(
    request: CreateSandbox,
    onProgress: OnProgress = ignore,
    signal?: AbortSignal,
  ): Promise<SandboxView> {
    return this.#withProgress('/sandboxes', request, onProgress, signal);
  }

  /** Fails as a create of the same would, for what can be known without an image. Makes nothing. */
  async checkSandbox(request: CheckSandbox, signal?: AbortSignal): Promise<void> {
    await this.#connection.json('POST', '/sandboxes/check', request, signal);
  }

  startSandbox(id: string, signal?: AbortSignal, options: StartSandbox = {}): Promise<SandboxView> {
    return this.#connection.json('POST', `/sandboxes/${segment(id)}/start`, options, signal);
  }

  /** Asks the processes to end, and kills them after `graceMs` (default 10 s). Stopping a stopped sandbox succeeds. */
  stopSandbox(
    id: string,
    options: { readonly graceMs?: number } = {},
    signal?: AbortSignal,
  ): Promise<SandboxView> {
    return this.#connection.json('POST', `/sandboxes/${segment(id)}/stop`, options, signal);
  }

  /** Legal in any state; removing a missing sandbox succeeds. */
  async removeSandbox(id: string, signal?: AbortSignal): Promise<void> {
    await this.#connection.json('DELETE', `/sandboxes/${segment(id)}`, undefined, signal);
  }

  getSandbox(id: string, signal?: AbortSignal): Promise<SandboxView> {
    return this.#connection.json('GET', `/sandboxes/${segment(id)}`, undefined, signal);
  }

  listSandboxes(signal?: AbortSignal): Promise<readonly SandboxView[]> {
    return this.#connection.json('GET', '/sandboxes', undefined, signal);
  }

  /** What is absent of it becomes the default. Holds at once, also for connections that exist, and for later runs. */
  setNetwork(id: string, network: NetworkUpdate, signal?: AbortSignal): Promise<SandboxView> {
    return this.#connection.json('PUT', `/sandboxes/${segment(id)}/network`, network, signal);
  }

  explainNetwork(request: ExplainNetwork, signal?: AbortSignal): Promise<Explanation> {
    return this.#connection.json('POST', '/network/explain', request, signal);
  }

  /** Copies the disk of a sandbox that does not run. A caller that aborts leaves nothing behind. */
  createSnapshot(request: CreateSnapshot, signal?: AbortSignal): Promise<SnapshotView> {
    return this.#connection.json('POST', '/snapshots', request, signal);
  }

  getSnapshot(id: string, signal?: AbortSignal): Promise<SnapshotView> {
    return this.#connection.json('GET', `/snapshots/${segment(id)}`, undefined, signal);
  }

  listSnapshots(signal?: AbortSignal): Promise<readonly SnapshotView[]> {
    return this.#connection.json('GET', '/snapshots', undefined, signal);
  }

  /** Always legal: sandboxes made from it have copies of their own. Removing a missing snapshot succeeds. */
  async removeSnapshot(id: string, signal?: AbortSignal): Promise<void> {
    await this.#connection.json('DELETE', `/snapshots/${segment(id)}`, undefined, signal);
  }

  /** The command channel of a running sandbox: bytes as contract/channel.md defines them, handshake included. */
  openChannel(id: string, signal?: AbortSignal): Promise<Duplex> {
    return this.#connection.upgrade(`/sandboxes/${segment(id)}/channel`, signal);
  }

  metrics(signal?: AbortSignal): Promise<readonly SandboxMetrics[]> {
    return this.#connection.json('GET', '/metrics', undefined, signal);
  }

  logs(id: string, options: ReadLogs = {}, signal?: AbortSignal): AsyncIterable<LogEntry> {
    return this.#connection.lines(`/sandboxes/${segment(id)}/logs?${query(options)}`, signal);
  }

  /** Events after `after` (0: all that are kept; absent: none of the past), then new ones as they happen, for ever. */
  events(options: { readonly after?: number } = {}, signal?: AbortSignal): AsyncIterable<EngineEvent> {
    return this.#connection.lines(`/events?${query(options)}`, signal);
  }

  pullImage(request: PullImage, onProgress: OnProgress = ignore, signal?: AbortSignal): Promise<ImageView> {
    return this.#withProgress('/images/pull', request, onProgress, signal);
  }

  importImage(
    request: ImportImage,
    onProgress: OnProgress = ignore,
    signal?: AbortSignal,
  ): Promise<ImageView> {
    return this.#withProgress('/images/import', request, onProgress, signal);
  }

  buildDemoImages(
    request: BuildDemoImages,
    onProgress: OnProgress = ignore,
    signal?: AbortSignal,
  ): Promise<readonly ImageView[]> {
    return this.#withProgress('/images/build-demo', request, onProgress, signal);
  }

  listImages(signal?: AbortSignal): Promise<readonly ImageView[]> {
    return this.#connection.json('GET', '/images', undefined, signal);
  }

  getImage(reference: string, signal?: AbortSignal): Promise<ImageView> {
    return this.#connection.json('GET', `/images/${segment(reference)}`, undefined, signal);
  }

  async removeImage(reference: string, signal?: AbortSignal): Promise<void> {
    await this.#connection.json('DELETE', `/images/${segment(reference)}`, undefined, signal);
  }

  listHeldImages(scope: string, signal?: AbortSignal): Promise<HeldImagesView> {
    return this.#connection.json('GET', `/scopes/${segment(scope)}/images`, undefined, signal);
  }

  /** Gives the image up for one scope; it stays for those who hold it too. */
  async releaseImage(scope: string, reference: string, signal?: AbortSignal): Promise<void> {
    const path = `/scopes/${segment(scope)}/images/${segment(reference)}`;
    await this.#connection.json('DELETE', path, undefined, signal);
  }

  pruneImages(
    signal?: AbortSignal,
  ): Promise<{ readonly images: readonly string[]; readonly freedBytes: number }> {
    return this.#connection.json('POST', '/images/prune', {}, signal);
  }

  createVolume(id: string, capacityMib: number, signal?: AbortSignal): Promise<Volume> {
    return this.#connection.json('POST', '/volumes', { id, capacityMib }, signal);
  }

  resizeVolume(id: string, capacityMib: number, signal?: AbortSignal): Promise<Volume> {
    return this.#connection.json('PATCH', `/volumes/${segment(id)}`, { capacityMib }, signal);
  }

  listVolumes(signal?: AbortSignal): Promise<readonly Volume[]> {
    return this.#connection.json('GET', '/volumes', undefined, signal);
  }

  volumeUsage(id: string, signal?: AbortSignal): Promise<VolumeUsage> {
    return this.#connection.json('GET', `/volumes/${segment(id)}/usage`, undefined, signal);
  }

  async removeVolume(id: string, signal?: AbortSignal): Promise<void> {
    await this.#connection.json('DELETE', `/volumes/${segment(id)}`, undefined, signal);
  }

  readVolumeFile(id: string, path: string, signal?: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    return this.#connection.download(`/volumes/${segment(id)}/content?${query({ path })}`, signal);
  }

  async writeVolumeFile(
    id: string,
    path: string,
    content: AsyncIterable<Uint8Array>,
    signal?: AbortSignal,
  ): Promise<void> {
    await this.#connection.upload(`/volumes/${segment(id)}/content?${query({ path })}`, content, signal);
  }

  listVolumeFiles(id: string, path: string, signal?: AbortSignal): Promise<readonly VolumeEntry[]> {
    return this.#connection.json('GET', `/volumes/${segment(id)}/list?${query({ path })}`, undefined, signal);
  }

  statVolumeFile(id: string, path: string, signal?: AbortSignal): Promise<VolumeEntry> {
    return this.#connection.json('GET', `/volumes/${segment(id)}/stat?${query({ path })}`, undefined, signal);
  }

  async makeVolumeFolder(id: string, path: string, signal?: AbortSignal): Promise<void> {
    await this.#connection.json('POST', `/volumes/${segment(id)}/mkdir`, { path }, signal);
  }

  async copyVolumeFile(id: string, from: string, to: string, signal?: AbortSignal): Promise<void> {
    await this.#connection.json('POST', `/volumes/${segment(id)}/copy`, { from, to }, signal);
  }

  async renameVolumeFile(id: string, from: string, to: string, signal?: AbortSignal): Promise<void> {
    await this.#connection.json('POST', `/volumes/${segment(id)}/rename`, { from, to }, signal);
  }

  async removeVolumeFile(
    id: string,
    path: string,
    options: { readonly recursive: boolean },
    signal?: AbortSignal,
  ): Promise<void> {
    const target = `/volumes/${segment(id)}/content?${query({ path, ...options })}`;
    await this.#connection.json('DELETE', target, undefined, signal);
  }

  async #withProgress<Result>(
    path: string,
    body: object,
    onProgress: OnProgress,
    signal?: AbortSignal,
  ): Promise<Result> {
    let last: StreamLine<Result> | undefined;
    // Read to its end, so that the next call can use the same connection.
    for await (const line of this.#connection.postLines<StreamLine<Result>>(path, body, signal)) {
      if ('progress' in line) onProgress(line.progress);
      else last = line;
    }
    if (last === undefined || 'progress' in last) throw this.#connection.cutOff();
    if ('error' in last) throw this.#connection.asError(last.error);
    return last.result;
  }
}

function ignore(): void {
  // The caller does not want progress.
}

function segment(text: string): string {
  return encodeURIComponent(text);
}

function query(values: object): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) {
    if (value !== undefined) search.set(key, Array.isArray(value) ? value.join(',') : String(value));
  }
  return search.toString();
}
