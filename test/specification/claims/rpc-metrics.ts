import assert from 'node:assert/strict';
import { BUSYBOX } from '../../engine/start-engine.ts';
import { claim, claimOnce, type Claim } from '../claim.ts';
import type { Ground, Json } from '../ground.ts';
import { call, failure, NAMESPACE, run, startedBox } from './rpc-call.ts';

async function metricsOf(ground: Ground, sandbox: string): Promise<Json> {
  const { sandboxes } = await call(ground, 'sandbox.metrics.get', { sandbox });
  assert.equal(sandboxes.length, 1);
  return sandboxes[0];
}

const ENTRY = 'sandbox.metrics.get.result.sandboxes';

export const metricsClaims: readonly Claim[] = [
  claim(
    'sandbox.metrics.get.params.namespace',
    'The namespace; `*` is all that the key reaches',
    'a sandbox is in its namespace and in all, and in no other',
    async (ground) => {
      const sandbox = await startedBox(ground);
      const names = async (namespace: string) =>
        (await call(ground, 'sandbox.metrics.get', { namespace })).sandboxes.map(({ name }: Json) => name);
      assert.deepEqual(
        [
          (await names(NAMESPACE)).includes(sandbox),
          (await names('*')).includes(sandbox),
          (await names('other')).includes(sandbox),
        ],
        [true, true, false],
      );
    },
  ),
  claimOnce(
    'sandbox.metrics.get.params.sandbox',
    'One sandbox; all of the namespace when it is left out or null',
    'one that is unknown is not found',
    async (ground) => {
      const sandbox = await startedBox(ground);
      assert.equal((await metricsOf(ground, sandbox)).name, sandbox);
      assert.ok((await call(ground, 'sandbox.metrics.get', { sandbox: null })).sandboxes.length > 0);
      const error = await failure(ground, 'sandbox.metrics.get', { sandbox: 'missing' });
      assert.equal(error.message, "Sandbox 'missing' not found in configuration");
    },
  ),
  claimOnce(`${ENTRY}.namespace`, 'Its namespace', 'the one that it was started in', async (ground) => {
    assert.equal((await metricsOf(ground, await startedBox(ground))).namespace, NAMESPACE);
  }),
  claimOnce(`${ENTRY}.name`, 'Its name', 'the one that it was started with', async (ground) => {
    const sandbox = await startedBox(ground);
    assert.equal((await metricsOf(ground, sandbox)).name, sandbox);
  }),
  claim(
    `${ENTRY}.running`,
    'Whether it runs',
    'one that runs; one that was stopped has null for its use',
    async (ground) => {
      assert.equal((await metricsOf(ground, await startedBox(ground))).running, true);
      const sandbox = ground.fresh('idle');
      await call(ground, 'sandbox.start', { sandbox, config: { image: BUSYBOX } });
      await call(ground, 'sandbox.stop', { sandbox });
      const {
        running,
        cpu_usage: cpu,
        memory_usage: memory,
        disk_usage: disk,
      } = await metricsOf(ground, sandbox);
      assert.deepEqual([running, cpu, memory, disk], [false, null, null, null]);
    },
  ),
  claim(
    `${ENTRY}.cpu_usage`,
    'Percent of one core over the last second',
    'it rises while a loop runs inside',
    async (ground) => {
      const sandbox = await startedBox(ground);
      await run(ground, 'sh -c "while [ ! -e /tmp/enough ]; do :; done" > /dev/null 2>&1 &');
      await ground.wait(async () => (await metricsOf(ground, sandbox)).cpu_usage > 5, 'the loop is seen');
      await run(ground, 'touch /tmp/enough');
    },
  ),
  claim(
    `${ENTRY}.memory_usage`,
    'MiB of memory',
    'it rises by what a file in memory takes',
    async (ground) => {
      const sandbox = await startedBox(ground);
      await run(ground, 'dd if=/dev/zero of=/dev/shm/fill bs=1M count=30');
      await ground.wait(
        async () => (await metricsOf(ground, sandbox)).memory_usage >= 30,
        'the memory is seen',
      );
      await run(ground, 'rm /dev/shm/fill');
    },
  ),
  claim(
    `${ENTRY}.disk_usage`,
    'Bytes of the writable layer',
    'it rises by what a file takes',
    async (ground) => {
      const sandbox = await startedBox(ground);
      const before = (await metricsOf(ground, sandbox)).disk_usage;
      await run(ground, 'dd if=/dev/zero of=/root/fill bs=1M count=20; sync');
      await ground.wait(
        async () => (await metricsOf(ground, sandbox)).disk_usage >= before + 20_000_000,
        'the file is seen',
      );
      await run(ground, 'rm /root/fill');
    },
  ),
];
