import { availableParallelism } from 'node:os';
import { Sandbox, type Client } from '@svc/sdk';
import { BUSYBOX } from '../test/engine/start-engine.ts';
import type { Benchmark, BenchmarkContext, Measurement } from './suite/benchmark.ts';
import { SdkServer } from './suite/sdk-server.ts';

const CALLERS = 2 * availableParallelism();

/** Many sandboxes at once, and as many as possible for a while: class container, each to its first output, through the SDK. */
export const burst: Benchmark = {
  name: 'burst',
  description: `100 sandboxes asked for at once; then create, use and remove by ${CALLERS} callers`,
  async run(context) {
    await using server = await SdkServer.start();
    return [
      ...(await measureBursts(server.client, context)),
      ...(await measureSustained(server.client, context)),
    ];
  },
};

async function measureBursts(
  client: Client,
  { isQuick, signal, note }: BenchmarkContext,
): Promise<Measurement[]> {
  const count = isQuick ? 6 : 100;
  const walls: number[] = [];
  let failures = 0;
  for (let round = 0; round < (isQuick ? 1 : 3); round++) {
    signal.throwIfAborted();
    const begun = performance.now();
    const made: Sandbox[] = [];
    const outcomes = await Promise.allSettled(
      Array.from({ length: count }, async () => made.push(await createAndUse(client))),
    );
    walls.push((performance.now() - begun) / 1000);
    const reasons = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
    for (const reason of reasons) note(`a create failed: ${String(reason)}`);
    failures += reasons.length;
    await Promise.all(made.map((sandbox) => sandbox.remove()));
  }
  return [
    { what: `${count} at once, all have spoken`, unit: 's', values: walls, promise: 'burst' },
    { what: `${count} at once, failures`, unit: '', values: [failures], promise: 'burst-failures' },
  ];
}

async function createAndUse(client: Client): Promise<Sandbox> {
  const sandbox = await Sandbox.create({ client, image: BUSYBOX, isolation: 'container' });
  const { code } = await sandbox.exec('/bin/echo', ['x']);
  if (code !== 0) throw new Error(`echo ended with ${code}`);
  return sandbox;
}

async function measureSustained(
  client: Client,
  { isQuick, signal }: BenchmarkContext,
): Promise<Measurement[]> {
  const rates: number[] = [];
  for (let round = 0; round < (isQuick ? 1 : 4); round++) {
    signal.throwIfAborted();
    rates.push(
      await perSecond(isQuick ? 300 : 5000, async () => await (await createAndUse(client)).remove()),
    );
  }
  return [
    {
      what: `created, used and removed by ${CALLERS} callers`,
      unit: '/s',
      values: rates,
      promise: 'sustained',
    },
  ];
}

/** How often `work` is completed per second when all callers repeat it for `windowMs`. */
async function perSecond(windowMs: number, work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  let completed = 0;
  const caller = async () => {
    while (performance.now() - begun < windowMs) {
      await work();
      completed++;
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  return completed / ((performance.now() - begun) / 1000);
}
