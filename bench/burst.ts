import { availableParallelism } from 'node:os';
import type { TestEngine } from '../test/engine/start-engine.ts';
import { BareRuntimes } from './bare-runtimes.ts';
import { interleave, ratio, type Benchmark, type BenchmarkContext, type Measurement } from './benchmark.ts';
import { measureFirstOutput, withEngine } from './first-output.ts';

const WORKERS = 2 * availableParallelism();

/** Many sandboxes at once, and as many as possible for a while. runc, with network, each to its first output. */
export const burst: Benchmark = {
  name: 'burst',
  description:
    '100 sandboxes asked for at once; then create and remove for 20 s from twice as many callers as CPUs',
  promise: 'no failure and ≤ 4 s for 100 at once; ≥ 35 per second sustained',
  async run(context) {
    await using bare = await BareRuntimes.prepare();
    return await withEngine([], async (engine) => [
      ...(await measureBursts(engine, context)),
      ...(await measureSustained(engine, bare, context)),
    ]);
  },
};

async function measureBursts(
  engine: TestEngine,
  { isQuick, signal, note }: BenchmarkContext,
): Promise<Measurement[]> {
  const count = isQuick ? 6 : 100;
  const walls: number[] = [];
  const each: number[] = [];
  const removals: number[] = [];
  let failures = 0;
  for (let round = 0; round < (isQuick ? 1 : 3); round++) {
    signal.throwIfAborted();
    const begun = performance.now();
    const asked = Array.from({ length: count }, () => measureFirstOutput(engine, 'container'));
    const outcomes = await Promise.allSettled(asked);
    const ended = performance.now();
    walls.push((ended - begun) / 1000);
    for (const outcome of outcomes) {
      if (outcome.status === 'fulfilled') each.push(outcome.value.total);
      else note(`a create failed: ${String(outcome.reason)}`);
    }
    failures += outcomes.filter(({ status }) => status === 'rejected').length;
    await removeAll(engine);
    removals.push((performance.now() - ended) / 1000);
  }
  return [
    { what: `${count} at once, all have spoken`, unit: 's', values: walls, target: { atMost: 4 } },
    { what: `${count} at once, failures`, unit: '', values: [failures], target: { atMost: 0 } },
    { what: `${count} at once, each`, unit: 'ms', values: each },
    { what: `${count} at once, all removed`, unit: 's', values: removals },
  ];
}

async function measureSustained(
  engine: TestEngine,
  bare: BareRuntimes,
  { isQuick, signal, note }: BenchmarkContext,
): Promise<Measurement[]> {
  const windowMs = isQuick ? 300 : 5000;
  let failures = 0;
  const createAndRemove = async () => {
    const { sandbox } = await measureFirstOutput(engine, 'container');
    await engine.client.removeSandbox(sandbox.id);
  };
  const tolerant = async () => {
    await createAndRemove().catch((error: unknown) => {
      failures++;
      note(`a create failed: ${String(error)}`);
    });
  };
  const values = await interleave(
    isQuick ? 1 : 4,
    {
      ours: () => perSecond(windowMs, tolerant),
      bare: () => perSecond(windowMs, () => bare.run('runc')),
    },
    signal,
  );
  return [
    {
      what: `created, used and removed by ${WORKERS} callers`,
      unit: '/s',
      values: values.ours,
      target: { atLeast: 35 },
    },
    { what: 'the same, failures', unit: '', values: [failures], target: { atMost: 0 } },
    { what: `bare runc run by ${WORKERS} callers`, unit: '/s', values: values.bare },
    ratio('bare runc run / ours', values.bare, values.ours),
  ];
}

/** How often `work` is completed per second when all workers repeat it for `windowMs`. */
async function perSecond(windowMs: number, work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  let completed = 0;
  const worker = async () => {
    while (performance.now() - begun < windowMs) {
      await work();
      completed++;
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, worker));
  return completed / ((performance.now() - begun) / 1000);
}

async function removeAll(engine: TestEngine): Promise<void> {
  const sandboxes = await engine.client.listSandboxes();
  await Promise.all(sandboxes.map(({ id }) => engine.client.removeSandbox(id)));
}
