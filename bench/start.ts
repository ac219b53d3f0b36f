import { waitUntil } from '@svc/contract/testing';
import { Sandbox } from '@svc/sdk';
import { BUSYBOX } from '../test/engine/start-engine.ts';
import { interleave, type Benchmark, type BenchmarkContext, type Measurement } from './suite/benchmark.ts';
import { timed } from './suite/measure.ts';
import { SdkServer } from './suite/sdk-server.ts';

const IMAGE = 'python';
const LATER_RUNS = 5;
const FULL_TIMEOUT_MS = 60_000;
/** Longer than the pool waits before it starts another one, and than a start takes. */
const SETTLED_MS = 1500;

/** Latency from create to first output and of runCode, through the SDK, with warm sandboxes and without. */
export const start: Benchmark = {
  name: 'start',
  description: 'create to first output and runCode through the SDK, by class',
  async run(context) {
    await using kept = await WarmServer.start(context.signal);
    await using cold = await SdkServer.start();
    return [...(await measureOutput(kept, cold, context)), ...(await measureCode(kept, context))];
  },
};

async function measureOutput(
  kept: WarmServer,
  cold: SdkServer,
  { isQuick, signal }: BenchmarkContext,
): Promise<Measurement[]> {
  const creates: number[] = [];
  const create = async ({ client }: SdkServer, image: string, isolation?: 'container' | 'gvisor') =>
    await Sandbox.create({ client, image, ...(isolation === undefined ? {} : { isolation }) });
  const warm = async () => {
    await kept.untilFull();
    const begun = performance.now();
    return await timeOutput(async () => {
      const sandbox = await create(kept.server, IMAGE);
      creates.push(performance.now() - begun);
      return sandbox;
    });
  };
  const values = await interleave(
    isQuick ? 1 : 15,
    {
      warm,
      container: () => timeOutput(() => create(cold, BUSYBOX, 'container')),
      gvisor: () => timeOutput(() => create(cold, BUSYBOX, 'gvisor')),
    },
    signal,
  );
  return [
    {
      what: 'create to first output, default class, kept warm',
      unit: 'ms',
      values: values.warm,
      promise: 'first-output-default',
    },
    { what: 'of it the create', unit: 'ms', values: creates.slice(1), promise: 'create-default' },
    {
      what: 'create to first output, container, cold',
      unit: 'ms',
      values: values.container,
      promise: 'first-output-container',
    },
    { what: 'create to first output, gVisor, cold', unit: 'ms', values: values.gvisor },
  ];
}

/** Milliseconds from the create until a process inside has written. */
async function timeOutput(create: () => Promise<Sandbox>): Promise<number> {
  const begun = performance.now();
  const sandbox = await create();
  const { code } = await sandbox.exec('/bin/echo', ['x']);
  const took = performance.now() - begun;
  if (code !== 0) throw new Error(`echo ended with ${code}`);
  await sandbox.remove();
  return took;
}

async function measureCode(kept: WarmServer, { isQuick, signal }: BenchmarkContext): Promise<Measurement[]> {
  const later: number[] = [];
  const { first } = await interleave(
    isQuick ? 1 : 15,
    {
      first: async () => {
        await kept.untilFull();
        const [took = 0, ...rest] = await kept.runCode();
        later.push(...rest);
        return took;
      },
    },
    signal,
  );
  return [
    { what: 'first runCode 1+1', unit: 'ms', values: first, promise: 'code-first' },
    { what: 'later runCode 1+1', unit: 'ms', values: later.slice(LATER_RUNS), promise: 'code-later' },
  ];
}

/** A server with the default pool, on which code of the image was run before. */
class WarmServer implements AsyncDisposable {
  readonly server: SdkServer;

  private constructor(server: SdkServer) {
    this.server = server;
  }

  static async start(signal: AbortSignal): Promise<WarmServer> {
    const warm = new WarmServer(await SdkServer.start({ engineArgs: ['--warm-adaptive', '3'] }));
    try {
      await warm.server.server.engine.client.images.buildDemoImages({ names: [IMAGE] }, undefined, signal);
      await warm.runCode();
      return warm;
    } catch (error) {
      await warm[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Milliseconds of each run of code in a new sandbox, the first one and some more. */
  async runCode(): Promise<number[]> {
    const sandbox = await Sandbox.create({ client: this.server.client, image: IMAGE });
    const times: number[] = [];
    while (times.length <= LATER_RUNS)
      times.push(await timed(() => sandbox.runCode('1+1', { language: 'python' })));
    await sandbox.remove();
    return times;
  }

  /** Waits until a warm sandbox with its interpreter is ready, and none is being started, which would take a core from the measurement. */
  async untilFull(): Promise<void> {
    let known = '';
    let since = performance.now();
    await waitUntil(
      async () => {
        const { waiting } = await this.server.server.engine.client.pool();
        const seen = JSON.stringify(waiting);
        if (seen !== known) since = performance.now();
        known = seen;
        const isReady = waiting.some(({ programs }) => programs.length > 0);
        return isReady && performance.now() - since > SETTLED_MS;
      },
      { timeoutMs: FULL_TIMEOUT_MS, what: 'a sandbox waits with its interpreter' },
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]();
  }
}
