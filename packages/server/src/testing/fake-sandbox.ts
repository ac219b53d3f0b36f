import type { Duplex } from 'node:stream';
import type {
  NewOrchestratorSandbox,
  ResolvedSpec,
  SandboxReport,
  SandboxUsageReport,
} from '@svc/contract/orchestrator';
import { lifecycleOf } from '../orchestrator/lifecycle-of.ts';
import { notRunning } from '../orchestrator/not-running.ts';
import type { createFakeAgent } from './fake-agent.ts';
import { FakeLog } from './fake-log.ts';
import { FakeNetworkLog } from './fake-network-log.ts';

/** One sandbox of the fake orchestrator: its report, its log, and its open channels. */
export class FakeSandbox {
  readonly request: NewOrchestratorSandbox;
  readonly log = new FakeLog();
  readonly networkLog = new FakeNetworkLog();
  readonly #streams = new Set<Duplex>();
  #report: SandboxReport;

  constructor(request: NewOrchestratorSandbox) {
    this.request = request;
    this.#report = {
      id: request.id,
      state: 'created',
      isolation: request.isolation ?? 'container',
      resolved: resolve(request),
      network: request.spec.network ?? {},
      networkCeiling: request.networkCeiling ?? null,
      lifecycle: lifecycleOf(request.spec),
      startedAt: null,
      endedAt: null,
      end: null,
    };
  }

  get report(): SandboxReport {
    return this.#report;
  }

  get isMeasured(): boolean {
    return this.#report.state === 'running' && this.request.spec.runtime?.disable_metrics_sample !== true;
  }

  move(change: Partial<SandboxReport>): SandboxReport {
    this.#report = { ...this.#report, ...change };
    this.log.add('system', this.#report.state);
    this.networkLog.wake();
    return this.#report;
  }

  end(state: 'stopped' | 'failed', end: { readonly reason: string; readonly message: string }): void {
    this.closeChannels();
    this.move({ state, endedAt: new Date().toISOString(), end });
  }

  openStream(createAgent: typeof createFakeAgent): Duplex {
    if (this.#report.state !== 'running') throw notRunning(this.#report);
    const { spec } = this.request;
    const env = Object.fromEntries((spec.env ?? []).map(({ key, value }) => [key, value]));
    const agent = createAgent(env, spec.runtime?.workdir ?? '/');
    this.#streams.add(agent);
    agent.once('close', () => this.#streams.delete(agent));
    return agent;
  }

  closeChannels(): void {
    for (const stream of this.#streams) stream.destroy();
    this.#streams.clear();
  }

  usage(): SandboxUsageReport {
    return {
      id: this.request.id,
      sampledAt: new Date().toISOString(),
      cpuPercent: 1.5,
      memoryBytes: 3 * 1024 * 1024,
      memoryLimitBytes: 512 * 1024 * 1024,
      diskUsedBytes: 4096,
      diskTotalBytes: 4096 * 1024 * 1024,
      networkReceivedBytes: 10,
      networkSentBytes: 20,
      processes: 2,
    };
  }
}

/** Resolves a spec with an image that has a command. */
function resolve({ id, spec }: NewOrchestratorSandbox): ResolvedSpec {
  const { runtime } = spec;
  const own = (spec.env ?? []).map(({ key, value }) => `${key}=${value}`);
  return {
    entrypoint: runtime?.entrypoint ?? ['/bin/tini'],
    cmd: runtime?.cmd ?? ['sh'],
    env: ['PATH=/usr/bin:/bin', ...own],
    workdir: runtime?.workdir ?? '/srv',
    user: runtime?.user ?? 'root',
    hostname: runtime?.hostname ?? id.slice(0, 12),
    labels: { vendor: 'fake' },
    rlimits: spec.rlimits ?? [],
  };
}
