import type { Isolation } from '@svc/engine/client';
import { startSandbox } from '../test/engine/sandbox-fixture.ts';
import type { TestEngine } from '../test/engine/start-engine.ts';
import { BareRuntimes } from './bare-runtimes.ts';
import { interleave, ratio, type Benchmark, type BenchmarkContext, type Measurement } from './benchmark.ts';
import { openChannel, runTrue, withEngine } from './first-output.ts';
import { timed } from './measure.ts';

/** The time of a process in a running sandbox, compared with the runtimes' own `exec`. */
export const exec: Benchmark = {
  name: 'exec',
  description: 'round trip of /bin/true: on a held channel, on a fresh one, and 100 at once',
  promise: 'container ≤ 1.5 ms on a held channel (p50)',
  async run(context) {
    await using bare = await BareRuntimes.prepare();
    return await withEngine([], async (engine) => [
      ...(await measure(engine, bare, 'runc', context)),
      ...(await measure(engine, bare, 'runsc', context)),
    ]);
  },
};

const CLASS_OF = { runc: 'container', runsc: 'gvisor' } as const satisfies Record<string, Isolation>;

async function measure(
  engine: TestEngine,
  bare: BareRuntimes,
  name: 'runc' | 'runsc',
  { isQuick, signal }: BenchmarkContext,
): Promise<Measurement[]> {
  const count = isQuick ? 10 : 100;
  const sandbox = await startSandbox(engine, CLASS_OF[name]);
  const idle = await bare.startIdle(name);
  const channel = await openChannel(engine, sandbox.id);
  const values = await interleave(
    isQuick ? 2 : 50,
    {
      held: () => timed(() => runTrue(channel)),
      fresh: () => timed(() => onFreshChannel(engine, sandbox.id)),
      bare: () => bare.exec(name, idle),
    },
    signal,
  );
  const back = await interleave(isQuick ? 2 : 500, { held: () => timed(() => runTrue(channel)) }, signal);
  const together = await interleave(
    isQuick ? 1 : 5,
    { all: () => timed(() => Promise.all(Array.from({ length: count }, () => runTrue(channel)))) },
    signal,
  );
  channel.close();
  await sandbox.remove();
  const target = name === 'runc' ? { target: { atMost: 1.5 } } : {};
  return [
    {
      what: `${CLASS_OF[name]}, held channel, one after the other`,
      unit: 'ms',
      values: back.held,
      ...target,
    },
    { what: `${CLASS_OF[name]}, held channel, beside the floor`, unit: 'ms', values: values.held },
    { what: `${CLASS_OF[name]}, fresh channel`, unit: 'ms', values: values.fresh },
    { what: `bare ${name} exec`, unit: 'ms', values: values.bare },
    ratio(`${CLASS_OF[name]}, held channel / bare ${name} exec`, values.held, values.bare),
    { what: `${CLASS_OF[name]}, ${count} at once, all`, unit: 'ms', values: together.all },
  ];
}

async function onFreshChannel(engine: TestEngine, id: string): Promise<void> {
  const channel = await openChannel(engine, id);
  try {
    await runTrue(channel);
  } finally {
    channel.close();
  }
}
