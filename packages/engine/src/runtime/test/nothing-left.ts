import assert from 'node:assert/strict';
import type { RuntimeWorld } from '../runtime.suite.ts';
import type { RuntimeSpec } from '../runtime.ts';
import { waitUntil } from './wait-until.ts';

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
  await waitUntil(`${spec.handle} is gone`, isGone).catch(() => assert.deepEqual(left, [], when));
}
