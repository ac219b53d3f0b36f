import { EventEmitter, on } from 'node:events';
import type { Duplex } from 'node:stream';
import { ChannelClient, PlatformError } from '@svc/contract';
import {
  type CheckSandbox,
  type EndingView,
  type ExplainNetwork,
  type FetchProgress,
  type FetchedImage,
  type HeldImagesView,
  type LifecycleUpdate,
  type LogEntry,
  type LogSource,
  type NetworkExplanation,
  type NetworkLogLine,
  type NetworkUpdate,
  type NewOrchestratorSandbox,
  type OrchestratorDescription,
  type NodeReport,
  type OfNode,
  type PoolView,
  type PullImage,
  type ReadLogs,
  type ReadNetworkLog,
  type RefusedConnections,
  type ReportedChange,
  STARTING_MESSAGE,
  type SandboxReport,
  type SandboxUsageReport,
  type SecretValues,
  type SpaceUser,
  type SpaceView,
} from '@svc/contract/orchestrator';
import { socketTransport } from '@svc/contract/node-socket-transport';
import { ceilingsOf, checkCeiling, explain, resolvePolicy } from '@svc/engine/policy';
import { createFakeAgent } from './fake-agent.ts';
import { FakeDenials } from './fake-denials.ts';
import { FakeImages } from './fake-images.ts';
import type { FakeNetworkLog } from './fake-network-log.ts';
import { describeFake, FAKE_POOL, fakeSpace } from './fake-node.ts';
import { FakeSandbox } from './fake-sandbox.ts';
import type { ImageStore } from '../orchestrator/image-store.ts';
import type { Nodes } from '../orchestrator/nodes.ts';
import type { Orchestrator } from '../orchestrator/orchestrator.ts';

const GIB = 1024 ** 3;
const KNOWN_CLASSES: ReadonlySet<string> = new Set(['container', 'gvisor']);
const FAKE_DIGEST = `sha256:${'0'.repeat(64)}`;
const NOWHERE = {
  gateway: { family: 4, value: 0n },
  pool: { family: 4, value: 0n, prefixLength: 32 },
  hostAddresses: [],
  neighbours: [],
} as const;
const NEVER = new AbortController().signal;

/**
 * Keeps the promises of three ports in memory; processes are real ones of this host. Image `missing` cannot be found, and
 * image `slow` is not there before `finishFetching`.
 */
export class FakeOrchestrator implements Orchestrator, ImageStore, Nodes {
  readonly #sandboxes = new Map<string, FakeSandbox>();
  readonly #changes = new EventEmitter<{ change: [ReportedChange] }>().setMaxListeners(0);
  readonly #images = new FakeImages();
  #away: AbortController = new AbortController();
  isAway = false;
  /** How many sandboxes there is room for. */
  capacity = Number.POSITIVE_INFINITY;
  /** Images that were asked for ahead. */
  readonly pulls: PullImage[] = [];
  /** Calls that change something, in their order; the one with this number fails, before it does anything. */
  failAtChange = 0;
  changesAsked = 0;
  /** How often it was asked how a sandbox is. */
  asked = 0;
  #sequence = 0;
  /** What every sandbox has resolved. */
  resolved: Parameters<typeof explain>[2] = [];
  /** As when the disk of the host is nearly full. */
  isShort = false;
  /** The sandbox's end of every channel. A test may put something hostile in its place. */
  createAgent: typeof createFakeAgent = createFakeAgent;

  /** As when the engine is killed: calls fail and watchers are thrown out; sandboxes run on. */
  goAway(): void {
    this.isAway = true;
    this.#away.abort(unreachable());
    this.#away = new AbortController();
    for (const sandbox of this.#sandboxes.values()) sandbox.closeChannels();
  }

  comeBack(): void {
    this.isAway = false;
  }

  /** How many starts and pulls are waiting for the slow image. */
  get fetching(): number {
    return this.#images.fetching;
  }

  finishFetching(): void {
    this.#images.finishFetching();
  }

  /** What it was asked to make. */
  requestOf(id: string): NewOrchestratorSandbox {
    return this.#find(id).request;
  }

  /** As when a sandbox's main process exits, or the kernel kills it. */
  end(id: string, reason: string, message: string): void {
    this.#find(id).end('failed', { reason, message });
    this.#emitChange(id);
  }

  async describe(): Promise<OrchestratorDescription> {
    await this.#answer();
    return describeFake(this.#sandboxes.size);
  }

  async check({ spec, isolation = 'container', networkCeiling }: CheckSandbox): Promise<void> {
    await this.#answer();
    checkCeiling(spec.network, ceilingsOf(networkCeiling));
    if (KNOWN_CLASSES.has(isolation)) return;
    throw new PlatformError('isolation_unavailable', `isolation ${isolation} is not available here`, {
      details: { isolation },
    });
  }

  async listNodes(): Promise<readonly NodeReport[]> {
    return [{ name: null, problem: null, description: await this.describe() }];
  }

  async place(): Promise<null> {
    return await Promise.resolve(null);
  }

  async pool(): Promise<readonly OfNode<PoolView>[]> {
    await this.#answer();
    return [{ node: null, ...FAKE_POOL }];
  }

  async storage(): Promise<readonly OfNode<SpaceView>[]> {
    await this.#answer();
    return [{ node: null, ...fakeSpace(this.isShort) }];
  }

  async storageUsers(): Promise<readonly SpaceUser[]> {
    await this.#answer();
    return [...this.#sandboxes.keys()].map((id) => ({ kind: 'sandbox' as const, id, bytes: GIB }));
  }

  async create(
    request: NewOrchestratorSandbox,
    onProgress: (progress: FetchProgress) => void,
    signal: AbortSignal = NEVER,
  ): Promise<SandboxReport> {
    await this.check(request);
    await this.#answerChange();
    const { id, spec } = request;
    if (this.#sandboxes.has(id)) throw new PlatformError('name_already_exists', `sandbox ${id} exists`);
    await this.#images.fetch(spec.image.reference, onProgress, signal);
    this.#images.hold(spec.image.reference, request.imageScope, request.maxHeldBytes);
    if (request.start === true) onProgress({ message: STARTING_MESSAGE, doneBytes: null, totalBytes: null });
    if (this.capacity <= this.#sandboxes.size)
      throw new PlatformError('insufficient_capacity', 'no room is left');
    const sandbox = new FakeSandbox(request);
    this.#sandboxes.set(id, sandbox);
    if (request.secretValues !== undefined) this.secretValues.set(id, request.secretValues);
    this.#emitChange(id);
    return request.start === true ? this.#run(id) : this.#reportOf(sandbox);
  }

  async pullImage(
    request: PullImage,
    onProgress: (progress: FetchProgress) => void,
    signal: AbortSignal = NEVER,
  ): Promise<FetchedImage> {
    await this.#answer();
    this.pulls.push(request);
    await this.#images.fetch(request.reference, onProgress, signal);
    this.#images.hold(request.reference, request.scope, request.maxHeldBytes);
    return { digest: FAKE_DIGEST, sizeBytes: 2 };
  }

  async listHeldImages(scope: string): Promise<HeldImagesView> {
    await this.#answer();
    return this.#images.list(scope, (reference) => this.#usesImage(scope, reference));
  }

  async releaseImage(scope: string, reference: string): Promise<void> {
    await this.#answerChange();
    this.#images.release(scope, reference, (name) => this.#usesImage(scope, name));
  }

  async start(id: string): Promise<SandboxReport> {
    await this.#answerChange();
    const sandbox = this.#find(id);
    return sandbox.report.state === 'running' ? this.#reportOf(sandbox) : this.#run(id);
  }

  async stop(id: string): Promise<SandboxReport> {
    await this.#answerChange();
    const sandbox = this.#find(id);
    if (sandbox.report.state !== 'running') return this.#reportOf(sandbox);
    sandbox.end('stopped', { reason: 'stopped', message: 'it was stopped' });
    this.#emitChange(id);
    return this.#reportOf(sandbox);
  }

  async remove(id: string): Promise<Pick<SandboxReport, 'sequence'>> {
    await this.#answerChange();
    const sandbox = this.#sandboxes.get(id);
    if (sandbox !== undefined) {
      sandbox.closeChannels();
      this.#sandboxes.delete(id);
      this.#emitChange(id);
    }
    return { sequence: this.#sequence };
  }

  async list(): Promise<readonly SandboxReport[]> {
    await this.#answer();
    return [...this.#sandboxes.values()].map((sandbox) => this.#reportOf(sandbox));
  }

  async get(id: string): Promise<SandboxReport | undefined> {
    await this.#answer();
    this.asked += 1;
    const sandbox = this.#sandboxes.get(id);
    return sandbox && this.#reportOf(sandbox);
  }

  /** Prepares none. */
  async expectProcess(id: string): Promise<void> {
    await this.#answer();
    this.#find(id);
  }

  async setNetwork(id: string, update: NetworkUpdate): Promise<SandboxReport> {
    await this.#answerChange();
    const { network } = this.#find(id).report;
    const { networkCeiling = this.#find(id).report.networkCeiling ?? null } = update;
    const {
      secretValues,
      networkCeiling: _,
      tls = network?.tls,
      secrets = network?.secrets,
      ...change
    } = update;
    // Throws where a create would.
    resolvePolicy(change);
    this.secretValues.set(id, { ...this.secretValues.get(id), ...secretValues });
    const kept = Object.entries({ tls, secrets }).filter(([, value]) => (value ?? null) !== null);
    return this.#move(id, { network: { ...change, ...Object.fromEntries(kept) }, networkCeiling });
  }

  async setLifecycle(id: string, lifecycle: LifecycleUpdate): Promise<SandboxReport> {
    await this.#answerChange();
    return this.#move(id, { lifecycle });
  }

  /** As when the lifetime of a sandbox is over soon. */
  announceEnd(id: string, ending: EndingView | null): void {
    this.#move(id, { ending });
  }

  readonly denied = new FakeDenials();
  readonly denials = (signal: AbortSignal) => this.denied.read(signal);
  readonly secretValues = new Map<string, SecretValues>();

  /** As on a host that is part of no network. */
  async explainNetwork({
    id,
    network,
    networkCeiling,
    ...question
  }: ExplainNetwork): Promise<NetworkExplanation> {
    await this.#answer();
    const known = this.#sandboxes.get(id);
    const asked = known === undefined ? network : known.report.network;
    const ceilings = ceilingsOf(known?.report.networkCeiling ?? networkCeiling);
    return { ...explain(asked, question, this.resolved, NOWHERE, ceilings), secrets: [] };
  }

  async metrics(): Promise<readonly SandboxUsageReport[]> {
    const measured = [...this.#sandboxes.values()].filter(({ isMeasured }) => isMeasured);
    await this.#answer();
    return measured.map((sandbox) => sandbox.usage());
  }

  async openChannel(id: string, signal: AbortSignal): Promise<ChannelClient> {
    const agent = await this.openStream(id);
    return await ChannelClient.connect(socketTransport(agent), { signal });
  }

  async openStream(id: string): Promise<Duplex> {
    await this.#answer();
    return this.#find(id).openStream(this.createAgent);
  }

  async *logs(id: string, options: ReadLogs, signal: AbortSignal): AsyncGenerator<LogEntry> {
    await this.#answer();
    const sandbox = this.#find(id);
    yield* sandbox.log.read(options, signal, () => sandbox.report.state !== 'running');
  }

  async *networkLog(
    id: string,
    options: ReadNetworkLog,
    signal: AbortSignal,
  ): AsyncGenerator<NetworkLogLine> {
    await this.#answer();
    const sandbox = this.#find(id);
    yield* sandbox.networkLog.read(options, signal, () => sandbox.report.state !== 'running');
  }

  async noteRefused(id: string, refused: RefusedConnections): Promise<void> {
    await this.#answer();
    for (const connection of refused.connections) this.#find(id).networkLog.addRefused(connection);
  }

  /** What was decided about the network of this sandbox; a test may add to it. */
  networkLogOf(id: string): FakeNetworkLog {
    return this.#find(id).networkLog;
  }

  /** How many follow the log of this sandbox right now. */
  followers(id: string): number {
    return this.#find(id).log.followers;
  }

  /** As when a process of the sandbox writes. */
  addLog(id: string, source: LogSource, text: string): void {
    this.#find(id).log.add(source, text);
  }

  async *changes(signal: AbortSignal): AsyncGenerator<ReportedChange | null> {
    await this.#answer();
    const away = this.#away.signal;
    try {
      for await (const [change] of on(this.#changes, 'change', { signal: AbortSignal.any([signal, away]) })) {
        yield change as ReportedChange | null;
      }
    } catch (error) {
      if (away.aborted) throw unreachable();
      if (!signal.aborted) throw error;
    }
  }

  #usesImage(scope: string, name: string): boolean {
    return this.#sandboxes
      .values()
      .some(({ request }) => request.imageScope === scope && request.spec.image.reference === name);
  }

  #run(id: string): SandboxReport {
    const startedAt = new Date().toISOString();
    return this.#move(id, { state: 'running', startedAt, endedAt: null, end: null });
  }

  /** Of calls that change something. */
  async #answerChange(): Promise<void> {
    await this.#answer();
    this.changesAsked += 1;
    if (this.changesAsked === this.failAtChange) throw unreachable();
  }

  #find(id: string): FakeSandbox {
    const sandbox = this.#sandboxes.get(id);
    if (sandbox === undefined) throw new PlatformError('sandbox_not_found', `sandbox ${id} does not exist`);
    return sandbox;
  }

  #move(id: string, change: Partial<SandboxReport>): SandboxReport {
    const sandbox = this.#find(id);
    sandbox.move(change);
    this.#emitChange(id);
    return this.#reportOf(sandbox);
  }

  /** Everybody who listens. */
  #emitChange(id: string): void {
    this.#sequence += 1;
    this.#changes.emit('change', { id, sequence: this.#sequence });
  }

  #reportOf({ report }: FakeSandbox): SandboxReport {
    return { ...report, sequence: this.#sequence };
  }

  async #answer(): Promise<void> {
    await Promise.resolve();
    if (this.isAway) throw unreachable();
  }
}

function unreachable(): PlatformError {
  return new PlatformError('orchestrator_unreachable', 'the engine cannot be reached');
}
