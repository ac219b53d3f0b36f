import type { Logger } from 'pino';
import type { ChannelPool } from '../orchestrator/channel-pool.ts';
import type { CodeContexts } from '../code/code-contexts.ts';
import type { CodeRunner } from '../code/code-runner.ts';
import type { EngineHealth } from '../orchestrator/engine-health.ts';
import type { HostStorage } from '../accounting/host-storage.ts';
import type { Lifecycle } from '../sandboxes/lifecycle.ts';
import type { MetricHistory } from '../accounting/metric-history.ts';
import type { Orchestrator } from '../orchestrator/orchestrator.ts';
import type { VolumeStore } from '../orchestrator/volume-store.ts';
import type { PreviewAddresses } from './previews/preview-place.ts';
import type { ProcessKeeper } from '../processes/process-keeper.ts';
import type { Sealer } from '../secrets/sealer.ts';
import type { SshPlace } from '../transports/ssh/ssh-gateway.ts';
import type { Database } from '../store/database.ts';

/** What the handlers of the control plane work with. */
export interface RestParts {
  readonly database: Database;
  readonly orchestrator: Orchestrator;
  readonly volumeStore: VolumeStore;
  /** Told when a snapshot is to be made or removed. */
  readonly snapshotWorker: { poke(): void };
  /** Told when a volume is to be made or removed. */
  readonly volumeKeeper: { poke(): void };
  readonly lifecycle: Lifecycle;
  /** For calls that read their answers at once. */
  readonly channels: ChannelPool;
  readonly processKeeper: ProcessKeeper;
  /** For code without a context. */
  readonly codeRunner: CodeRunner;
  readonly codeContexts: CodeContexts;
  readonly health: EngineHealth;
  readonly storage: HostStorage;
  readonly sealer: Sealer;
  readonly metricHistory: MetricHistory;
  /** Null: this server has no domain for previews. */
  readonly previews: PreviewAddresses | null;
  /** Null: this server has no SSH gateway. */
  readonly ssh: () => SshPlace | null;
  /** Of JSON. */
  readonly maxBodyBytes: number;
  readonly settings: RestSettings;
  readonly logger: Logger;
}

/** What an operator may choose. */
export interface RestSettings {
  /** After an outage, sandboxes recover by themselves for this long; then somebody must decide. */
  readonly recoveryMs: number;
  /** How many calls with `wait_for` may be held at once. */
  readonly maxWaiters: number;
  /** Addresses of this host that callers may publish ports on, beside loopback. */
  readonly publishAddresses: readonly string[];
  /** GiB of volumes without a cap of their own, the host volumes among them. What is not used takes no space. */
  readonly defaultVolumeGib: number;
  /** How often what each volume holds is measured. */
  readonly volumeSampleMs: number;
  /** How often what each running sandbox uses is measured. */
  readonly metricSampleMs: number;
  /** For how long audit events are kept; null: for ever. */
  readonly keepEventsMs: number | null;
  /** How often it is looked for runs that may not go on. */
  readonly limitCheckMs: number;
}

export const DEFAULT_REST_SETTINGS: RestSettings = {
  recoveryMs: 10 * 60_000,
  maxWaiters: 1024,
  publishAddresses: [],
  defaultVolumeGib: 10,
  volumeSampleMs: 60_000,
  metricSampleMs: 5000,
  keepEventsMs: 90 * 24 * 60 * 60_000,
  limitCheckMs: 30_000,
};
