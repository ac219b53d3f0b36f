import assert from 'node:assert/strict';
import { waitUntil } from '@svc/contract/testing';
import type { RuntimeWorld } from '../runtime/runtime.suite.ts';
import type { RuntimeSpec } from '../runtime/runtime.ts';

/** Waits until nothing of a sandbox is there: what a runtime has forked may take a moment longer to go than the runtime itself. */
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
