import { EventEmitter, on } from 'node:events';
import { ChannelClient, PlatformError, type SandboxSpec } from '@svc/contract';
import { duplexTransport } from '@svc/engine/client';
import { createFakeAgent } from './fake-agent.ts';
import type {
  FetchProgress,
  Orchestrator,
  OrchestratorDescription,
  SandboxReport,
  SandboxUsageReport,
} from './orchestrator.ts';

interface FakeSandbox {
  readonly spec: SandboxSpec;
  report: SandboxReport;
  readonly channels: Set<ChannelClient>;
}

/** Keeps the promises of the port in memory; processes are real ones of this host. Image `missing` cannot be found. */
export class FakeOrchestrator implements Orchestrator {
  readonly #sandboxes = new Map<string, FakeSandbox>();
  readonly #changes = new EventEmitter<{ change: [string | null] }>().setMaxListeners(0);
  #away: AbortController = new AbortController();
  isAway = false;

  /** As when the engine is killed: calls fail and watchers are thrown out; sandboxes run on. */
  goAway(): void {
    this.isAway = true;
    this.#away.abort(unreachable());
    this.#away = new AbortController();
    for (const { channels } of this.#sandboxes.values()) closeAll(channels);
  }

  comeBack(): void {
    this.isAway = false;
  }

  /** As when a sandbox's main process ends by itself, or the kernel ends it. */
  end(id: string, reason: string, message: string): void {
    const sandbox = this.#find(id);
    closeAll(sandbox.channels);
    this.#move(id, { state: 'failed', endedAt: now(), end: { reason, message } });
  }

  async describe(): Promise<OrchestratorDescription> {
    await this.#answer();
    return { version: 'fake', isolation: 'container', problem: null };
  }

  async create(
    request: { readonly id: string; readonly spec: SandboxSpec },
    onProgress: (progress: FetchProgress) => void,
  ): Promise<SandboxReport> {
    await this.#answer();
    const { id, spec } = request;
    if (this.#sandboxes.has(id)) throw new PlatformError('name_already_exists', `sandbox ${id} exists`);
    onProgress({ message: 'downloading image', doneBytes: 1, totalBytes: 2 });
    if (spec.image.reference === 'missing') {
      throw new PlatformError('image_not_found', 'image missing is not known; import it first');
    }
    const report: SandboxReport = { id, state: 'created', startedAt: null, endedAt: null, end: null };
    this.#sandboxes.set(id, { spec, report, channels: new Set() });
    this.#changes.emit('change', id);
    return report;
  }

  async start(id: string): Promise<SandboxReport> {
    await this.#answer();
    const { report } = this.#find(id);
    if (report.state === 'running') return report;
    return this.#move(id, { state: 'running', startedAt: now(), endedAt: null, end: null });
  }

  async stop(id: string): Promise<SandboxReport> {
    await this.#answer();
    const { report, channels } = this.#find(id);
    if (report.state !== 'running') return report;
    closeAll(channels);
    return this.#move(id, {
      state: 'stopped',
      endedAt: now(),
      end: { reason: 'stopped', message: 'it was stopped' },
    });
  }

  async remove(id: string): Promise<void> {
    await this.#answer();
    const sandbox = this.#sandboxes.get(id);
    if (sandbox === undefined) return;
    closeAll(sandbox.channels);
    this.#sandboxes.delete(id);
    this.#changes.emit('change', id);
  }

  async list(): Promise<readonly SandboxReport[]> {
    await this.#answer();
    return [...this.#sandboxes.values()].map(({ report }) => report);
  }

  async get(id: string): Promise<SandboxReport | undefined> {
    await this.#answer();
    return this.#sandboxes.get(id)?.report;
  }

  async metrics(): Promise<readonly SandboxUsageReport[]> {
    const running = (await this.list()).filter(({ state }) => state === 'running');
    return running.map(({ id }) => ({
      id,
      cpuPercent: 1.5,
      memoryBytes: 3 * 1024 * 1024,
      diskUsedBytes: 4096,
    }));
  }

  async openChannel(id: string, signal: AbortSignal): Promise<ChannelClient> {
    await this.#answer();
    const { spec, report, channels } = this.#find(id);
    if (report.state !== 'running') {
      throw new PlatformError('sandbox_not_running', `sandbox ${id} is ${report.state}; start it first`);
    }
    const env = Object.fromEntries((spec.env ?? []).map(({ key, value }) => [key, value]));
    const agent = createFakeAgent(env, spec.runtime?.workdir ?? '/');
    const channel = await ChannelClient.connect(duplexTransport(agent), { signal });
    channels.add(channel);
    return channel;
  }

  async *changes(signal: AbortSignal): AsyncGenerator<string | null> {
    await this.#answer();
    const away = this.#away.signal;
    try {
      for await (const [id] of on(this.#changes, 'change', { signal: AbortSignal.any([signal, away]) })) {
        yield id as string | null;
      }
    } catch (error) {
      if (away.aborted) throw unreachable();
      if (!signal.aborted) throw error;
    }
  }

  #find(id: string): FakeSandbox {
    const sandbox = this.#sandboxes.get(id);
    if (sandbox === undefined) throw new PlatformError('sandbox_not_found', `sandbox ${id} does not exist`);
    return sandbox;
  }

  #move(id: string, change: Partial<SandboxReport>): SandboxReport {
    const sandbox = this.#find(id);
    sandbox.report = { ...sandbox.report, ...change };
    this.#changes.emit('change', id);
    return sandbox.report;
  }

  async #answer(): Promise<void> {
    await Promise.resolve();
    if (this.isAway) throw unreachable();
  }
}

function unreachable(): PlatformError {
  return new PlatformError('orchestrator_unreachable', 'the engine cannot be reached');
}

function closeAll(channels: Set<ChannelClient>): void {
  for (const channel of channels) channel.close();
  channels.clear();
}

function now(): string {
  return new Date().toISOString();
}
