import { setTimeout as delay } from 'node:timers/promises';
import { startSandbox, type TestSandbox } from '../test/engine/sandbox-fixture.ts';
import type { TestEngine } from '../test/engine/start-engine.ts';
import { ratio, type Benchmark, type BenchmarkContext, type Measurement } from './benchmark.ts';
import { openChannel, runTrue, withEngine } from './first-output.ts';
import { timed } from './measure.ts';

/** The cost of an idle gVisor sandbox, and the latency of the first call after idling. */
export const resting: Benchmark = {
  name: 'resting',
  description:
    'processor time of gVisor sandboxes without a process, beside some in which one sleeps, and /bin/true in one that rests',
  promise: 'without a process ≤ 1 ms of CPU a second each (p50)',
  run: async (context) => await withEngine([], (engine) => measure(engine, context)),
};

async function measure(
  engine: TestEngine,
  { isQuick, signal }: BenchmarkContext,
): Promise<readonly Measurement[]> {
  const [count, windowMs, rounds] = isQuick ? [1, 2500, 1] : [5, 20_000, 20];
  const start = async () => await startSandbox(engine, 'gvisor');
  const empty = await Promise.all(Array.from({ length: count }, start));
  const used = await Promise.all(Array.from({ length: count }, start));
  for (const sandbox of used) await sandbox.sh('sleep 1000 > /dev/null 2>&1 &');
  await delay(isQuick ? 2000 : 5000, undefined, { signal });
  const before = await readUsage(engine);
  await delay(windowMs, undefined, { signal });
  const after = await readUsage(engine);
  const rates = (sandboxes: readonly TestSandbox[]) =>
    sandboxes.map(({ id }) => rateOf(before.get(id), after.get(id)));
  const [atRest, awake] = [rates(empty), rates(used)];
  for (const sandbox of used) await sandbox.remove();
  const [first] = empty;
  const calls =
    first === undefined ? { after: [], next: [] } : await timeCalls(engine, first, rounds, signal);
  for (const sandbox of empty) await sandbox.remove();
  return [
    { what: 'CPU a second, one in which a program sleeps', unit: 'ms', values: awake },
    { what: 'CPU a second, without a process', unit: 'ms', values: atRest, target: { atMost: 1 } },
    ratio('one in which a program sleeps / without a process', awake, atRest),
    { what: '/bin/true after two seconds of rest', unit: 'ms', values: calls.after },
    { what: '/bin/true right after that', unit: 'ms', values: calls.next },
  ];
}

interface Usage {
  readonly cpuMs: number;
  readonly atMs: number;
}

async function readUsage(engine: TestEngine): Promise<ReadonlyMap<string, Usage>> {
  const all = await engine.client.metrics();
  return new Map(
    all.map(({ id, cpuSeconds, sampledAt }) => [
      id,
      { cpuMs: cpuSeconds * 1000, atMs: Date.parse(sampledAt) },
    ]),
  );
}

/** Milliseconds of the processor in a second. */
function rateOf(before: Usage | undefined, after: Usage | undefined): number {
  if (before === undefined || after === undefined) return Number.NaN;
  return ((after.cpuMs - before.cpuMs) / (after.atMs - before.atMs)) * 1000;
}

async function timeCalls(engine: TestEngine, { id }: TestSandbox, rounds: number, signal: AbortSignal) {
  const channel = await openChannel(engine, id);
  const times = { after: [] as number[], next: [] as number[] };
  for (let round = 0; round < rounds; round++) {
    await delay(2000, undefined, { signal });
    times.after.push(await timed(() => runTrue(channel)));
    times.next.push(await timed(() => runTrue(channel)));
  }
  channel.close();
  return times;
}
