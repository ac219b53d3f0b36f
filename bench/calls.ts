import { GuestProbe } from '../test/engine/guest-probe.ts';
import { startSandbox, type TestSandbox } from '../test/engine/sandbox-fixture.ts';
import type { TestEngine } from '../test/engine/start-engine.ts';
import { BareRuntimes } from './bare-runtimes.ts';
import { interleave, ratio, type Benchmark, type BenchmarkContext, type Measurement } from './benchmark.ts';
import { openChannel, withEngine } from './first-output.ts';

const NEIGHBOURS = 4;
const NEIGHBOURS_SECONDS = '600';
/** Short, like most work: about a third of it passes before the engine classifies the sandbox as computing. */
const MEASURED_MS = '300';
const KEYS = ['getppid p50', 'getppid mean', 'stat p50', 'stat mean'] as const;

/** Nanoseconds. */
type Times = Readonly<Record<(typeof KEYS)[number], number>>;

/** Latency of system calls in gVisor, alone, beside other sandboxes, and without svc. */
export const calls: Benchmark = {
  name: 'calls',
  description: `system calls in a gVisor sandbox of one vCPU: alone, and beside ${NEIGHBOURS} that compute all the time`,
  promise: `beside ${NEIGHBOURS} busy neighbours a system call takes ≤ 3 × what it does in bare runsc on an idle host (p50)`,
  async run(context) {
    const [program, noise] = await Promise.all([
      GuestProbe.compile('../../bench/calls-probe.c'),
      GuestProbe.compile('../security/noise.c'),
    ]);
    await using bare = await BareRuntimes.prepare({ 'calls-probe': program.program });
    return await withEngine([], (engine) => measure(engine, bare, { program, noise }, context));
  },
};

async function measure(
  engine: TestEngine,
  bare: BareRuntimes,
  { program, noise }: { readonly program: GuestProbe; readonly noise: GuestProbe },
  { isQuick, signal }: BenchmarkContext,
): Promise<Measurement[]> {
  const rounds = isQuick ? 1 : 12;
  const sandbox = await startSandbox(engine, 'gvisor');
  await program.putInto(sandbox);
  const idle = await bare.startIdle('runsc');
  const inSandbox = () => timesOf(async () => (await sandbox.run(COMMAND)).stdout);
  const inBare = () => timesOf(() => bare.output('runsc', idle, ['/bin/calls-probe', MEASURED_MS]));
  const alone = await interleave(rounds, { svc: inSandbox, bare: inBare }, signal);
  const neighbours = await startNeighbours(engine, noise);
  const { svc: beside } = await interleave(rounds, { svc: inSandbox }, signal);
  for (const neighbour of [sandbox, ...neighbours]) await neighbour.remove();
  return KEYS.flatMap((key) => {
    const microseconds = (all: readonly Times[]) => all.map((times) => times[key] / 1000);
    const [floor, busy] = [microseconds(alone.bare), microseconds(beside)];
    const target = key.endsWith('p50') ? { atMost: 3 } : undefined;
    return [
      { what: `${key}, bare runsc`, unit: 'µs', values: floor },
      { what: `${key}, alone`, unit: 'µs', values: microseconds(alone.svc) },
      { what: `${key}, beside ${NEIGHBOURS}`, unit: 'µs', values: busy },
      ratio(`${key}, beside ${NEIGHBOURS} / bare runsc`, busy, floor, target),
    ];
  });
}

const COMMAND = { cmd: '/bin/probe', args: [MEASURED_MS] };

async function startNeighbours(engine: TestEngine, noise: GuestProbe): Promise<readonly TestSandbox[]> {
  const neighbours: TestSandbox[] = [];
  for (let count = 0; count < NEIGHBOURS; count++) {
    const neighbour = await startSandbox(engine, 'gvisor');
    await noise.putInto(neighbour);
    const channel = await openChannel(engine, neighbour.id);
    await channel.exec({ cmd: '/bin/probe', args: ['spin', NEIGHBOURS_SECONDS] });
    neighbours.push(neighbour);
  }
  return neighbours;
}

async function timesOf(run: () => Promise<string>): Promise<Times> {
  const lines = (await run()).trim().split('\n');
  const entries = lines.flatMap((line) => {
    const [call, p50, mean] = line.split(' ');
    return [[`${call} p50`, Number(p50)] as const, [`${call} mean`, Number(mean)] as const];
  });
  return Object.fromEntries(entries) as Times;
}
