import { randomBytes } from 'node:crypto';
import type { SandboxSpec } from '@svc/contract';
import { PlatformError } from '@svc/contract/errors';
import type { ImageConfig, Isolation, SandboxState } from '@svc/contract/orchestrator';
import type { EndReason } from '../client/engine-api.ts';
import type { Slot } from '../network/network.ts';

/** What the engine must remember of a sandbox across restarts. One JSON file each. */
export interface EngineRecord {
  /** The name of this sandbox's folder, cgroup and container on the host. Generated, never chosen by a caller. */
  readonly handle: string;
  /** The caller's name for it; null while it is in the warm pool. */
  readonly id: string | null;
  /** False until create has answered: a half-made sandbox is removed after a crash. */
  readonly complete: boolean;
  readonly spec: SandboxSpec;
  readonly isolation: Isolation;
  readonly runtime: string;
  readonly image: { readonly reference: string; readonly id: string; readonly config: ImageConfig };
  /** The organization whose private image it is, see `CreateSandbox`; absent in older records. */
  readonly imageScope?: string | null;
  readonly volumes: Readonly<Record<string, string>>;
  readonly hostVolume: string | null;
  /** A folder below the roots of the host; see `CreateSandbox`. */
  readonly hostFolder: string | null;
  /** The operator's upper bound for the network policy, see `CreateSandbox`; absent or null: the engine's default. */
  readonly networkCeiling?: readonly string[] | null;
  /** Where its cgroup is, see `CreateSandbox`; absent or null: among the engine's own. */
  readonly cgroupParent?: string | null;
  readonly createdAt: string;
  readonly patched: boolean;
  readonly state: SandboxState;
  readonly run: RunRecord | null;
}

/** One run, from start to end. */
export interface RunRecord {
  readonly bootId: string;
  readonly token: string;
  readonly slot: Slot | null;
  readonly startedAt: string;
  readonly endedAt: string | null;
  readonly end: {
    readonly reason: EndReason;
    readonly message: string;
    readonly exitCode: number | null;
  } | null;
  /** Duration of each step of the start in milliseconds. */
  readonly timings: Readonly<Record<string, number>>;
}

export function newHandle(): string {
  return randomBytes(8).toString('hex');
}

export function wasRemoved({ id, state }: EngineRecord): PlatformError {
  const details = { sandboxId: id, state };
  return new PlatformError('sandbox_not_found', `there is no sandbox ${id}; it was removed`, { details });
}

/** Drops the patches from a record once they are applied: they may be large and are not needed again. */
export function withoutPatches(record: EngineRecord): EngineRecord {
  const { patches: _applied, ...spec } = record.spec;
  return { ...record, spec, patched: true };
}
