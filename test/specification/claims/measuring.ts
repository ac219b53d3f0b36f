import assert from 'node:assert/strict';
import { claim, type Claim } from '../claim.ts';
import type { Ground, Json } from '../ground.ts';
import { ORGANIZATION } from '../ground.ts';
import { plainBox } from './record.ts';

const LEVELS = ['error', 'warn', 'info', 'debug', 'trace'];

/** What svc itself wrote into the log of a sandbox that was started and stopped with this level. */
async function linesWith(ground: Ground, level: string): Promise<number> {
  const box = await ground.running({ runtime: { log_level: level } });
  assert.equal(box.spec.runtime.log_level, level);
  await ground.stop(box.id);
  const { body } = await ground.rest('GET', `/sandboxes/${box.id}/logs/entries?sources=system`);
  await ground.remove(box.id);
  return body.data.length;
}

async function metricsOf(ground: Ground, name: string): Promise<Json> {
  const { result } = await ground.rpc('sandbox.metrics.get', { namespace: ORGANIZATION, sandbox: name });
  return (result as Json).sandboxes[0];
}

export const measuringClaims: readonly Claim[] = [
  claim(
    'spec.runtime.log_level',
    'How much svc itself writes into the log of the sandbox',
    'the lines of the source `system` after a start and a stop, with each level',
    async (ground) => {
      const counts: number[] = [];
      for (const level of LEVELS) counts.push(await linesWith(ground, level));
      assert.deepEqual(
        counts,
        counts.toSorted((a, b) => a - b),
        JSON.stringify(counts),
      );
      assert.ok((counts.at(-1) ?? 0) > (counts[0] ?? 0), JSON.stringify(counts));
    },
    { default: '`info`', covers: LEVELS.map((level) => `spec.runtime.log_level=${level}`) },
  ),
  claim(
    'spec.runtime.disable_metrics_sample',
    'Nothing is measured of it',
    'its metrics are null while it runs, and those of another are not',
    async (ground) => {
      const box = await ground.running({ runtime: { disable_metrics_sample: true } });
      assert.equal(box.spec.runtime.disable_metrics_sample, true);
      const { running, cpu_usage: cpu, memory_usage: memory } = await metricsOf(ground, box.name);
      assert.deepEqual([running, cpu, memory], [true, null, null]);
      const plain = await plainBox(ground);
      assert.equal(plain.spec.runtime.disable_metrics_sample, false);
      assert.equal(typeof (await metricsOf(ground, plain.name)).memory_usage, 'number');
      await ground.remove(box.id);
    },
    { default: '`false`' },
  ),
  claim(
    'spec.runtime.metrics_sample_interval_ms',
    'How long there is between two measurements',
    'what it uses is measured once, and not again while the interval lasts',
    async (ground) => {
      const box = await ground.running({ runtime: { metrics_sample_interval_ms: 3_600_000 } });
      assert.equal(box.spec.runtime.metrics_sample_interval_ms, 3_600_000);
      const before = (await metricsOf(ground, box.name)).memory_usage;
      await ground.seen(box, 'dd if=/dev/zero of=/dev/shm/fill bs=1M count=25 2> /dev/null');
      const plain = await plainBox(ground);
      await ground.seen(plain, 'dd if=/dev/zero of=/dev/shm/fill bs=1M count=25 2> /dev/null');
      await ground.wait(
        async () => (await metricsOf(ground, plain.name)).memory_usage >= 25,
        'another one is measured',
      );
      assert.equal((await metricsOf(ground, box.name)).memory_usage, before);
      await ground.seen(plain, 'rm /dev/shm/fill');
      assert.equal(plain.spec.runtime.metrics_sample_interval_ms, 1000);
      await ground.remove(box.id);
    },
    { default: '1000' },
  ),
];
