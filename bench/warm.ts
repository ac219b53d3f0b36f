import { waitUntil } from '@svc/contract/testing';
import { Client, Sandbox } from '@svc/sdk';
import { createKey } from '@svc/server/keys';
import { TestServer } from '../test/e2e/start-server.ts';
import { interleave, ratio, type Benchmark, type BenchmarkContext, type Measurement } from './benchmark.ts';
import { timed } from './measure.ts';

const IMAGE = 'python';
const FULL_TIMEOUT_MS = 60_000;
/** Longer than the pool waits before it starts another one, and than a start takes. */
const SETTLED_MS = 1500;

/** Latency of a repeated use of an image, with warm sandboxes and without. */
export const warm: Benchmark = {
  name: 'warm',
  description:
    'an image that was used before, default class, through the SDK: create, first output, runCode, exec',
  promise:
    'create to first output ≤ 25 ms; runCode first ≤ 30 ms, later ≤ 3 ms; exec on a held connection ≤ 8 ms (p50)',
  async run(context) {
    await using kept = await Place.open('3', context.signal);
    await using cold = await Place.open('0', context.signal);
    return await measure(kept, cold, context);
  },
};

async function measure(
  kept: Place,
  cold: Place,
  { isQuick, signal }: BenchmarkContext,
): Promise<Measurement[]> {
  const rounds = isQuick ? 1 : 15;
  for (const place of [kept, cold]) await place.runCode();
  const { warm: warmOutput, cold: coldOutput } = await interleave(
    rounds,
    { warm: () => kept.firstOutput(), cold: () => cold.firstOutput() },
    signal,
  );
  await interleave(rounds, { warm: () => kept.runCode(), cold: () => cold.runCode() }, signal);
  const sandbox = await Sandbox.create({ client: kept.client, image: IMAGE });
  await sandbox.exec('/bin/true');
  const { exec } = await interleave(
    isQuick ? 2 : 100,
    { exec: () => timed(() => sandbox.exec('/bin/true')) },
    signal,
  );
  await sandbox.remove();
  const [warmCode, coldCode] = [kept.counted(), cold.counted()];
  return [
    { what: 'create to first output, kept warm', unit: 'ms', values: warmOutput, target: { atMost: 25 } },
    { what: 'of it the create', unit: 'ms', values: kept.creates },
    { what: 'create to first output, cold', unit: 'ms', values: coldOutput },
    ratio('first output, kept warm / cold', warmOutput, coldOutput),
    { what: 'first runCode 1+1, kept warm', unit: 'ms', values: warmCode.first, target: { atMost: 30 } },
    { what: 'first runCode 1+1, cold', unit: 'ms', values: coldCode.first },
    ratio('first runCode, kept warm / cold', warmCode.first, coldCode.first),
    { what: 'later runCode 1+1', unit: 'ms', values: warmCode.later, target: { atMost: 3 } },
    { what: '/bin/true on a held connection', unit: 'ms', values: exec, target: { atMost: 8 } },
  ];
}

/** A server with an engine of its own, and what was measured on it. */
class Place {
  readonly client: Client;
  readonly creates: number[] = [];
  readonly #server: TestServer;
  readonly #isKept: boolean;
  readonly #codes: { readonly first: number; readonly later: readonly number[] }[] = [];

  private constructor(server: TestServer, client: Client, isKept: boolean) {
    this.#server = server;
    this.client = client;
    this.#isKept = isKept;
  }

  static async open(warmAdaptive: string, signal: AbortSignal): Promise<Place> {
    const server = await TestServer.start({ args: [], engineArgs: ['--warm-adaptive', warmAdaptive] });
    try {
      await server.engine.client.images.buildDemoImages({ names: [IMAGE] }, undefined, signal);
      const { key } = await createKey(server.engine.folder, { namespace: 'default' });
      return new Place(server, new Client({ apiUrl: server.url, apiKey: key }), warmAdaptive !== '0');
    } catch (error) {
      await server.destroy();
      throw error;
    }
  }

  async firstOutput(): Promise<number> {
    await this.#untilFull();
    const begun = performance.now();
    const sandbox = await Sandbox.create({ client: this.client, image: IMAGE });
    this.creates.push(performance.now() - begun);
    const { code } = await sandbox.exec('/bin/echo', ['x']);
    const took = performance.now() - begun;
    if (code !== 0) throw new Error(`echo ended with ${code}`);
    await sandbox.remove();
    return took;
  }

  /** The first time that code runs in a sandbox; how long it takes from then on is kept beside it. */
  async runCode(): Promise<number> {
    await this.#untilFull();
    const sandbox = await Sandbox.create({ client: this.client, image: IMAGE });
    const run = () => timed(() => sandbox.runCode('1+1', { language: 'python' }));
    const first = await run();
    const later: number[] = [];
    for (let count = 0; count < 5; count++) later.push(await run());
    this.#codes.push({ first, later });
    await sandbox.remove();
    return first;
  }

  /** Without the first run, which is the first one of code on this server. */
  counted(): { readonly first: readonly number[]; readonly later: readonly number[] } {
    const codes = this.#codes.slice(1);
    return { first: codes.map(({ first }) => first), later: codes.flatMap(({ later }) => later) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.destroy();
  }

  /** Waits until a warm sandbox with its interpreter is ready, and none is being started, which would take a core from the measurement. */
  async #untilFull(): Promise<void> {
    if (!this.#isKept || this.#codes.length === 0) return;
    let known = '';
    let since = performance.now();
    await waitUntil(
      async () => {
        const { waiting } = await this.#server.engine.client.pool();
        const seen = JSON.stringify(waiting);
        if (seen !== known) since = performance.now();
        known = seen;
        const isReady = waiting.some(({ programs }) => programs.length > 0);
        return isReady && performance.now() - since > SETTLED_MS;
      },
      { timeoutMs: FULL_TIMEOUT_MS, what: 'a sandbox waits with its interpreter' },
    );
  }
}
