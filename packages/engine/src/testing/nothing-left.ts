import assert from 'node:assert/strict';
import { waitUntil } from '@svc/contract/testing';
import type { RuntimeWorld } from '../runtime/runtime.suite.ts';
import type { RuntimeSpec } from '../runtime/runtime.ts';

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
