import { availableParallelism } from 'node:os';
import { Client, Sandbox } from '@svc/sdk';
import type { Isolation } from '@svc/engine/client';
import { createKey } from '@svc/server/keys';
import { TestServer } from '../test/e2e/start-server.ts';
import { GuestProbe } from '../test/engine/guest-probe.ts';
import { BUSYBOX } from '../test/engine/start-engine.ts';
import { startResolver } from '../test/specification/resolver.ts';
import { Attackers, ATTACKS, NOISE_PLACE, putNoise, type Attack } from './attackers.ts';
import { percentile, type Benchmark, type BenchmarkContext, type Measurement } from './benchmark.ts';
import { timed } from './measure.ts';

const COUNTS = [1, 4, 8] as const;
const TARGET = 3;
/** Of one kind of call beside one kind of attack; what has been measured until then counts. */
const MAX_MS = 10_000;

/** What a tenant that does little notices of neighbours that do all they can, through the SDK, beside nobody in the same run. */
export const neighbours: Benchmark = {
  name: 'neighbours',
  description:
    'a quiet tenant beside 1, 4 and 8 attackers of another organization: p99 against that without any',
  promise: 'p99 ≤ 3 × the one without neighbours but for CPU that is oversold, and no failure',
  async run(context) {
    await using resolver = await startResolver();
    const nameserver = ['--nameserver', `${resolver.address}#${resolver.port}`];
    const server = await TestServer.start({ args: [], engineArgs: nameserver });
    try {
      return await measureAll(server, context);
    } finally {
      await server.destroy();
    }
  },
};

type Call = 'exec' | 'create' | 'dns' | 'rest';
const CALLS: readonly Call[] = ['exec', 'create', 'dns', 'rest'];
type Times = Record<Call, number[]>;

async function measureAll(server: TestServer, context: BenchmarkContext): Promise<Measurement[]> {
  const program = (await GuestProbe.compile('../security/noise.c')).program;
  const [quiet, noisy] = await Promise.all(['quiet', 'noisy'].map((name) => clientOf(server, name)));
  if (quiet === undefined || noisy === undefined) throw new Error('two clients');
  await using tenant = await Tenant.start(quiet, program, context);
  const alone: Times = { exec: [], create: [], dns: [], rest: [] };
  const beside: { readonly attack: Attack; readonly title: string; count: number; times: Times }[] = [];
  for (const { attack, isolation, count } of scenarios(context.isQuick)) {
    context.signal.throwIfAborted();
    const title = `${attack.name} × ${count}, ${isolation}`;
    await tenant.measure('nobody', alone);
    await using _ = await Attackers.start(noisy, attack, { count, isolation, program });
    const times: Times = { exec: [], create: [], dns: [], rest: [] };
    await tenant.measure(title, times);
    beside.push({ attack, title, count, times });
  }
  return [
    ...CALLS.map((call) => ({ what: `${call}, nobody beside`, unit: 'ms' as const, values: alone[call] })),
    ...beside.flatMap(({ attack, title, count, times }) =>
      CALLS.map((call) => compare(`${title}: ${call}`, times[call], alone[call], isOversold(attack, count))),
    ),
    { what: 'failures', unit: '', values: [tenant.failures], target: { atMost: 0 } },
  ];
}

/** All attacks, or those that the variable NEIGHBOURS names: `NEIGHBOURS=yes,dial`. */
function scenarios(isQuick: boolean): { attack: Attack; isolation: Isolation; count: number }[] {
  const named = process.env['NEIGHBOURS']?.split(',');
  const attacks = ATTACKS.filter(({ name }) => named?.includes(name) ?? true);
  if (isQuick) return attacks.slice(0, 1).map((attack) => ({ attack, isolation: 'container', count: 1 }));
  return attacks.flatMap((attack) =>
    (['container', 'gvisor'] as const).flatMap((isolation) =>
      COUNTS.map((count) => ({ attack, isolation, count })),
    ),
  );
}

/** With the tenant itself there is more to do than CPUs to do it. */
function isOversold({ isBusy }: Attack, count: number): boolean {
  return isBusy && count + 1 > availableParallelism();
}

function compare(
  what: string,
  ours: readonly number[],
  alone: readonly number[],
  isOversold: boolean,
): Measurement {
  const values = [percentile(ours, 99) / percentile(alone, 99)];
  return { what, unit: '×', values, ...(isOversold ? {} : { target: { atMost: TARGET } }) };
}

/** Does a little now and then, each call for itself, and counts what fails. */
class Tenant implements AsyncDisposable {
  readonly #client: Client;
  readonly #sandbox: Sandbox;
  readonly #context: BenchmarkContext;
  failures = 0;

  private constructor(client: Client, sandbox: Sandbox, context: BenchmarkContext) {
    this.#client = client;
    this.#sandbox = sandbox;
    this.#context = context;
  }

  static async start(client: Client, program: Uint8Array, context: BenchmarkContext): Promise<Tenant> {
    const sandbox = await Sandbox.create({ client, image: BUSYBOX, isolation: 'container' });
    await putNoise(sandbox, program);
    return new Tenant(client, sandbox, context);
  }

  async measure(title: string, times: Times): Promise<void> {
    const { isQuick, note } = this.#context;
    const fresh: Times = { exec: [], create: [], dns: [], rest: [] };
    await this.#repeat(isQuick ? 5 : 200, fresh.exec, () => timed(() => this.#exec()));
    await this.#repeat(isQuick ? 5 : 200, fresh.rest, () => timed(() => this.#sandbox.refresh()));
    await this.#repeat(isQuick ? 1 : 15, fresh.create, () => this.#create());
    await this.#askNames(isQuick ? 5 : 100, fresh.dns);
    const shown = CALLS.map((call) => {
      const [p50, p99] = [50, 99].map((percent) => percentile(fresh[call], percent).toFixed(1));
      return `${call} ${p50} / ${p99} ms`;
    });
    note(`beside ${title}: ${shown.join(', ')}; ${this.failures} failures so far`);
    for (const call of CALLS) times[call].push(...fresh[call]);
  }

  async #repeat(rounds: number, into: number[], work: () => Promise<number>): Promise<void> {
    const end = performance.now() + MAX_MS;
    for (let round = 0; round < rounds && performance.now() < end; round++) {
      this.#context.signal.throwIfAborted();
      try {
        into.push(await work());
      } catch (error) {
        this.#fail(error);
      }
    }
  }

  async #exec(): Promise<void> {
    const { code } = await this.#sandbox.exec('/bin/true');
    if (code !== 0) throw new Error(`/bin/true ended with ${code}`);
  }

  /** To its first output; removing it again does not count. */
  async #create(): Promise<number> {
    const begun = performance.now();
    await using sandbox = await Sandbox.create({
      client: this.#client,
      image: BUSYBOX,
      isolation: 'container',
    });
    await sandbox.exec('/bin/echo', ['x']);
    return performance.now() - begun;
  }

  /** Timed inside, so that only the answers count. */
  async #askNames(count: number, into: number[]): Promise<void> {
    const address = "$(sed -n 's/^nameserver //p' /etc/resolv.conf)";
    try {
      const script = `${NOISE_PLACE} measure-dns ${count} ${address}`;
      const result = await this.#sandbox.exec('/bin/sh', ['-c', script]);
      for (const line of result.text().trim().split('\n')) {
        if (Number(line) >= 0) into.push(Number(line) / 1000);
        else this.#fail(new Error('a name was not answered'));
      }
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    this.failures++;
    this.#context.note(`a call failed: ${String(error)}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sandbox[Symbol.asyncDispose]();
  }
}

async function clientOf(server: TestServer, namespace: string): Promise<Client> {
  const { key } = await createKey(server.engine.folder, { namespace });
  return new Client({ apiUrl: server.url, apiKey: key });
}
