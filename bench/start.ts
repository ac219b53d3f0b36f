import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { waitUntil } from '@svc/contract/testing';
import type { Isolation } from '@svc/engine/client';
import { BUSYBOX, type TestEngine } from '../test/engine/start-engine.ts';
import { BareRuntimes } from './bare-runtimes.ts';
import { interleave, ratio, type Benchmark, type BenchmarkContext, type Measurement } from './benchmark.ts';
import { measureFirstOutput, withEngine, type FirstOutput } from './first-output.ts';

const WARM = { container: 2, gvisor: 1 } as const;

/** Cold and warm starts of both classes, beside the runtimes' own command lines. */
export const start: Benchmark = {
  name: 'start',
  description: 'from create to the first byte of output, cold and from the warm pool',
  promise:
    'cold container ≤ 2 × bare `runc run` and ≤ 62 ms, warm ≤ 6 ms, cold runsc ≤ 1.5 × bare `runsc run` (p50)',
  async run(context) {
    await using bare = await BareRuntimes.prepare();
    const cold = await withEngine([], (engine) => measureCold(engine, bare, context));
    const pools = Object.entries(WARM).flatMap(([name, count]) => ['--warm', `${BUSYBOX}=${count}@${name}`]);
    const warm = await withEngine(pools, (engine) => measureWarm(engine, context));
    return [...cold, ...warm];
  },
};

async function measureCold(
  engine: TestEngine,
  bare: BareRuntimes,
  { isQuick, signal }: BenchmarkContext,
): Promise<Measurement[]> {
  const container = new Recorder(engine, 'container');
  const runsc = new Recorder(engine, 'gvisor');
  const light = await interleave(
    isQuick ? 2 : 60,
    { ours: () => container.measure(), bare: () => bare.run('runc'), bwrap: () => bare.bwrap() },
    signal,
  );
  const heavy = await interleave(
    isQuick ? 1 : 15,
    { ours: () => runsc.measure(), bare: () => bare.run('runsc') },
    signal,
  );
  return [
    { what: 'container, cold', unit: 'ms', values: light.ours, target: { atMost: 62 } },
    { what: 'bare runc run', unit: 'ms', values: light.bare },
    { what: 'bwrap --unshare-all', unit: 'ms', values: light.bwrap },
    ratio('container, cold / bare runc run', light.ours, light.bare, { atMost: 2 }),
    ...container.steps('container, cold'),
    { what: 'runsc, cold', unit: 'ms', values: heavy.ours },
    { what: 'bare runsc run', unit: 'ms', values: heavy.bare },
    ratio('runsc, cold / bare runsc run', heavy.ours, heavy.bare, { atMost: 1.5 }),
    ...runsc.steps('runsc, cold'),
  ];
}

async function measureWarm(
  engine: TestEngine,
  { isQuick, signal }: BenchmarkContext,
): Promise<Measurement[]> {
  const container = new Recorder(engine, 'container');
  const runsc = new Recorder(engine, 'gvisor');
  const afterRefill = (recorder: Recorder) => async () => {
    await waitForPools(engine);
    return await recorder.measure();
  };
  const light = await interleave(isQuick ? 1 : 40, { ours: afterRefill(container) }, signal);
  const heavy = await interleave(isQuick ? 1 : 10, { ours: afterRefill(runsc) }, signal);
  return [
    { what: 'container, warm', unit: 'ms', values: light.ours, target: { atMost: 6 } },
    ...container.parts('container, warm'),
    { what: 'runsc, warm', unit: 'ms', values: heavy.ours },
    ...runsc.parts('runsc, warm'),
  ];
}

/** Measures one class again and again, and keeps what each part took. */
class Recorder {
  readonly #engine: TestEngine;
  readonly #isolation: Isolation;
  readonly #outputs: FirstOutput[] = [];

  constructor(engine: TestEngine, isolation: Isolation) {
    this.#engine = engine;
    this.#isolation = isolation;
  }

  async measure(): Promise<number> {
    const output = await measureFirstOutput(this.#engine, this.#isolation);
    this.#outputs.push(output);
    await this.#engine.client.removeSandbox(output.sandbox.id);
    return output.total;
  }

  /** The times that the caller sees. */
  parts(prefix: string): Measurement[] {
    const part = (name: 'create' | 'channel' | 'process') =>
      measurement(`  ${prefix}: ${name}`, this.#counted, (output) => output[name]);
    return [part('create'), part('channel'), part('process')];
  }

  /** The times that the caller sees, and those that the engine reports about the start. */
  steps(prefix: string): Measurement[] {
    const outputs = this.#counted;
    const names = Object.keys(outputs[0]?.sandbox.timings ?? {}).filter((name) => name !== 'total');
    const inEngine = names.map((name) =>
      measurement(`    ${prefix}: start, ${name}`, outputs, ({ sandbox }) => sandbox.timings?.[name] ?? 0),
    );
    const around = measurement(
      `    ${prefix}: disk, records and the call`,
      outputs,
      ({ create, sandbox }) => create - (sandbox.timings?.['total'] ?? 0),
    );
    const [create, ...rest] = this.parts(prefix);
    return [...(create === undefined ? [] : [create]), ...inEngine, around, ...rest];
  }

  /** The first one warms caches. */
  get #counted(): readonly FirstOutput[] {
    return this.#outputs.slice(1);
  }
}

function measurement(
  what: string,
  outputs: readonly FirstOutput[],
  read: (output: FirstOutput) => number,
): Measurement {
  return { what, unit: 'ms', values: outputs.map(read) };
}

const POOL_TIMEOUT_MS = 30_000;

/** Counts the warm pool by its records: a running sandbox without an id belongs to the pool. */
async function waitForPools(engine: TestEngine): Promise<void> {
  const folder = join(engine.folder, 'sandboxes');
  const wanted = Object.values(WARM).reduce((sum, count) => sum + count, 0);
  await waitUntil(
    async () => {
      const texts = await Promise.all(
        (await readdir(folder)).map((handle) =>
          readFile(join(folder, handle, 'record.json'), 'utf8').catch(() => '{}'),
        ),
      );
      const waiting = texts
        // The last line counts.
        .map(
          (text) =>
            JSON.parse(text.trim().split('\n').at(-1) ?? '') as { id?: string | null; state?: string },
        )
        .filter(({ id, state }) => id === null && state === 'running');
      return waiting.length >= wanted;
    },
    { timeoutMs: POOL_TIMEOUT_MS, what: 'the warm pools are full' },
  );
}
