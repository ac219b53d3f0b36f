import assert from 'node:assert/strict';
import { waitUntil } from '@svc/contract/testing';
import type { Runtime, RuntimeSpec } from '../runtime/runtime.ts';

/** The environment in which a runtime is tested. */
export interface RuntimeWorld {
  /** Creates another adapter over the same folder, as a later process of the engine does. */
  open(): Runtime;
  /** A complete spec. What it names exists, except for `changes`. */
  spec(changes?: Partial<RuntimeSpec>): Promise<RuntimeSpec>;
  /** Processes, cgroups and files that still exist of a removed sandbox. */
  leftovers(spec: RuntimeSpec): Promise<readonly string[]>;
  defer(cleanup: () => Promise<void>): void;
  close(): Promise<void>;
}

/** Waits until nothing of a sandbox exists: child processes of a runtime may exit a moment after the runtime. */
export async function nothingLeft(
  world: Pick<RuntimeWorld, 'leftovers'>,
  spec: RuntimeSpec,
  when = 'removed',
): Promise<void> {
  let left: readonly string[] = [];
  const isGone = async () => {
    left = await world.leftovers(spec);
    return left.length === 0;
  };
  await waitUntil(isGone, `${spec.handle} is gone`).catch(() => assert.deepEqual(left, [], when));
}
