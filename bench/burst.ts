import { availableParallelism } from 'node:os';
import { Client, Sandbox } from '@svc/sdk';
import { createKey } from '@svc/server/keys';
import { TestServer } from '../test/e2e/start-server.ts';
import { BUSYBOX, type TestEngine } from '../test/engine/start-engine.ts';
import { BareRuntimes } from './bare-runtimes.ts';
import { interleave, ratio, type Benchmark, type BenchmarkContext, type Measurement } from './benchmark.ts';
import { measureFirstOutput } from './first-output.ts';

const WORKERS = 2 * availableParallelism();

/** Many sandboxes at once, and as many as possible for a while. Class container, with network, each to its first output. */
export const burst: Benchmark = {
  name: 'burst',
  description:
    '100 sandboxes asked for at once; then create and remove for 20 s from twice as many callers as CPUs, at the engine and through the SDK',
  promise:
    'no failure and ≤ 4 s for 100 at once; ≥ 35 per second sustained, ≥ 0.8 of bare runc run through the SDK',
  async run(context) {
    await using bare = await BareRuntimes.prepare();
    const server = await TestServer.start({ args: [] });
    try {
      return [
        ...(await measureBursts(server.engine, context)),
        ...(await measureSustained(server, bare, context)),
      ];
    } finally {
      await server.destroy();
    }
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
  server: TestServer,
  bare: BareRuntimes,
  { isQuick, signal, note }: BenchmarkContext,
): Promise<Measurement[]> {
  const windowMs = isQuick ? 300 : 5000;
  let failures = 0;
  const tolerant = (createAndRemove: () => Promise<void>) => async () => {
    await createAndRemove().catch((error: unknown) => {
      failures++;
      note(`a create failed: ${String(error)}`);
    });
  };
  const atEngine = tolerant(async () => {
    const { sandbox } = await measureFirstOutput(server.engine, 'container');
    await server.engine.client.removeSandbox(sandbox.id);
  });
  const throughSdk = tolerant(await sdkCycle(server));
  const values = await interleave(
    isQuick ? 1 : 4,
    {
      sdk: () => perSecond(windowMs, throughSdk),
      engine: () => perSecond(windowMs, atEngine),
      bare: () => perSecond(windowMs, () => bare.run('runc')),
    },
    signal,
  );
  const what = `created, used and removed by ${WORKERS} callers`;
  return [
    { what: `${what}, at the engine`, unit: '/s', values: values.engine, target: { atLeast: 35 } },
    { what: `${what}, through the SDK`, unit: '/s', values: values.sdk },
    { what: 'the same, failures', unit: '', values: [failures], target: { atMost: 0 } },
    { what: `bare runc run by ${WORKERS} callers`, unit: '/s', values: values.bare },
    ratio('at the engine / bare runc run', values.engine, values.bare),
    ratio('through the SDK / bare runc run', values.sdk, values.bare, { atLeast: 0.8 }),
  ];
}

/** A single use of a sandbox: three calls over HTTP, and a connection for the process. */
async function sdkCycle(server: TestServer): Promise<() => Promise<void>> {
  const { key } = await createKey(server.engine.folder, { namespace: 'default' });
  const client = new Client({ apiUrl: server.url, apiKey: key });
  return async () => {
    const sandbox = await Sandbox.create({ client, image: BUSYBOX, isolation: 'container' });
    const { code } = await sandbox.exec('/bin/echo', ['x']);
    await sandbox.remove();
    if (code !== 0) throw new Error(`echo ended with ${code}`);
  };
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
