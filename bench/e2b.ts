import { Sandbox } from '@svc/sdk';
import { BUSYBOX } from '../test/engine/start-engine.ts';
import { interleave, type Benchmark, type BenchmarkContext, type Measurement } from './suite/benchmark.ts';
import { E2bWire } from './suite/e2b-wire.ts';
import { timed } from './suite/measure.ts';
import { SdkServer } from './suite/sdk-server.ts';

const AT_ONCE = 100;

/** What the wire of E2B's clients adds to a command, each in turn with our SDK in the same sandbox, and sandboxes at once over it. */
export const e2b: Benchmark = {
  name: 'e2b',
  description: "/bin/true over the wire of E2B's clients and by the SDK in the same sandbox; 100 at once",
  async run(context) {
    return [...(await measureExec(context)), ...(await measureBurst(context))];
  },
};

async function measureExec({ isQuick, signal }: BenchmarkContext): Promise<Measurement[]> {
  await using server = await SdkServer.start();
  const wire = new E2bWire(server.server.url, server.key);
  const measurements: Measurement[] = [];
  for (const isolation of ['container', 'gvisor'] as const) {
    const { client } = server;
    await using sandbox = await Sandbox.create({ client, image: BUSYBOX, isolation });
    const known = await wire.connect(sandbox.id);
    const times = await interleave(
      isQuick ? 5 : 300,
      {
        own: () => timed(() => runTrue(sandbox)),
        e2b: () => timed(() => wire.run(known, '/bin/true')),
      },
      signal,
    );
    const added = times.e2b.map((time, round) => time - (times.own[round] ?? Number.NaN));
    const promise = isolation === 'container' ? { promise: 'e2b-exec' } : {};
    measurements.push(
      { what: `/bin/true by the SDK, ${isolation}`, unit: 'ms', values: times.own },
      { what: `/bin/true over E2B's wire, ${isolation}`, unit: 'ms', values: times.e2b },
      { what: `what E2B's wire adds, ${isolation}`, unit: 'ms', values: added, ...promise },
    );
  }
  return measurements;
}

async function measureBurst({ isQuick, signal }: BenchmarkContext): Promise<Measurement[]> {
  await using server = await SdkServer.start({ engineArgs: ['--isolation', 'container'] });
  const wire = new E2bWire(server.server.url, server.key);
  const count = isQuick ? 4 : AT_ONCE;
  signal.throwIfAborted();
  const begun = performance.now();
  const outcomes = await Promise.allSettled(
    Array.from({ length: count }, async () => {
      const sandbox = await wire.create(BUSYBOX);
      await wire.run(sandbox, '/bin/true');
      return sandbox;
    }),
  );
  const seconds = (performance.now() - begun) / 1000;
  const made = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
  await Promise.all(made.map((sandbox) => wire.kill(sandbox)));
  return [
    { what: `${count} sandboxes at once until each ran /bin/true`, unit: 's', values: [seconds] },
    { what: 'of these that failed', unit: '', values: [count - made.length], promise: 'e2b-failures' },
  ];
}

async function runTrue(sandbox: Sandbox): Promise<void> {
  const { code } = await sandbox.exec('/bin/true');
  if (code !== 0) throw new Error(`/bin/true ended with ${code}`);
}
