import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Network } from '@svc/contract';
import type { Isolation } from '@svc/engine/client';
import { HttpsInternet, VALUE } from '../test/engine/https-internet.ts';
import { startSandbox, type TestSandbox } from '../test/engine/sandbox-fixture.ts';
import type { TestEngine } from '../test/engine/start-engine.ts';
import {
  interleave,
  percentile,
  ratio,
  type Benchmark,
  type BenchmarkContext,
  type Measurement,
} from './benchmark.ts';
import { timed } from './measure.ts';
import { measureProxies } from './network-proxies.ts';
import { measureManyRules } from './network-rules.ts';
import {
  HTTPS_HOST,
  HTTPS_PORT,
  NetworkPeers,
  numbersOf,
  TCP_PORT,
  UNDISTURBED,
  type Place,
} from './network-peers.ts';

/** The cost of the policy, the resolver and the proxy for outgoing traffic, compared with a plain veth. */
export const network: Benchmark = {
  name: 'network',
  description:
    'TCP, HTTPS that is read, DNS, create with and without network, many rules, and a proxy per scope',
  promise:
    'plain TCP ≤ 1.1 × a bare veth, a request that is read ≤ 2 ms more, ≥ 300 MiB/s of them, ≥ 1,000 names/s, network ≤ 5 ms of a create, 200 × 50 rules ≤ 2 s',
  async run(context) {
    await using world = await HttpsInternet.start();
    await using peers = await NetworkPeers.start(world.internet);
    const parts: Readonly<Record<string, () => Promise<Measurement[]>>> = {
      tcp: () => measureTcp(world, peers, context),
      https: () => measureHttps(world, peers, context),
      dns: () => measureDns(world, peers, context),
      create: () => measureCreate(world, context),
      rules: () => measureManyRules(peers, context),
      proxies: () => measureProxies(peers, context),
    };
    const measurements: Measurement[] = [];
    for (const [name, measure] of Object.entries(parts))
      if (isWanted(name)) measurements.push(...(await measure()));
    return measurements;
  },
};

/** All parts, or those that the variable NETWORK names: `NETWORK=tcp,dns`. */
function isWanted(part: string): boolean {
  return process.env['NETWORK']?.split(',').includes(part) ?? true;
}

async function measureTcp(
  world: HttpsInternet,
  peers: NetworkPeers,
  { isQuick, signal }: BenchmarkContext,
): Promise<Measurement[]> {
  const allowed: Network = {
    policy: {
      rules: [
        {
          direction: 'egress',
          action: 'allow',
          destination: { cidr: `${peers.internet.publicAddress}/32` },
          protocols: ['tcp'],
          ports: [{ start: TCP_PORT, end: TCP_PORT }],
        },
      ],
    },
  };
  await using container = await Guest.start(world, peers, 'container', allowed);
  await using gvisor = await Guest.start(world, peers, 'gvisor', allowed);
  const [turns, dials, mib, gvisorMib] = isQuick ? [20, 5, 8, 4] : [2000, 300, 1024, 256];
  const quick = (place: Place, what: 'turns' | 'dials', count: number) => async () =>
    percentile(await peers.probe(place, what, count), UNDISTURBED);
  const times = await interleave(
    isQuick ? 1 : 15,
    {
      bareTurn: quick(peers.bare, 'turns', turns),
      turn: quick(container.place, 'turns', turns),
      bareDial: quick(peers.bare, 'dials', dials),
      dial: quick(container.place, 'dials', dials),
      gvisorTurn: async () => percentile(await gvisor.probe('turns', turns), UNDISTURBED),
    },
    signal,
  );
  const rates = await interleave(
    isQuick ? 1 : 5,
    {
      bare: async () => (await peers.probe(peers.bare, 'fetch', mib))[0] ?? 0,
      ours: async () => (await peers.probe(container.place, 'fetch', mib))[0] ?? 0,
      gvisor: async () => (await gvisor.probe('fetch', gvisorMib))[0] ?? 0,
    },
    signal,
  );
  return [
    { what: 'TCP, 32 bytes there and back, bare veth', unit: 'µs', values: times.bareTurn },
    { what: 'TCP, 32 bytes there and back, allowed by a rule', unit: 'µs', values: times.turn },
    ratio('TCP there and back / bare veth', times.turn, times.bareTurn, { atMost: 1.1 }),
    { what: 'TCP there and back from gVisor', unit: 'µs', values: times.gvisorTurn },
    { what: 'TCP connection with one exchange, bare veth', unit: 'µs', values: times.bareDial },
    { what: 'TCP connection with one exchange, allowed by a rule', unit: 'µs', values: times.dial },
    ratio('TCP connection / bare veth', times.dial, times.bareDial),
    { what: 'TCP download, bare veth', unit: 'MiB/s', values: rates.bare },
    { what: 'TCP download, allowed by a rule', unit: 'MiB/s', values: rates.ours },
    ratio('TCP download, bare veth / ours', rates.bare, rates.ours, { atMost: 1.1 }),
    { what: 'TCP download by gVisor', unit: 'MiB/s', values: rates.gvisor },
  ];
}

async function measureHttps(
  world: HttpsInternet,
  peers: NetworkPeers,
  { isQuick, signal }: BenchmarkContext,
): Promise<Measurement[]> {
  const tls = { intercepted_ports: [HTTPS_PORT], upstream_ca_cert: [peers.certificate] };
  const allowed = { allowed_hosts: [{ type: 'exact', value: HTTPS_HOST }] };
  const given = world.network({ tls }, allowed);
  await using container = await Guest.start(world, peers, 'container', given);
  await using gvisor = await Guest.start(world, peers, 'gvisor', given);
  const [count, mib, gvisorMib] = isQuick ? [10, 8, 4] : [500, 512, 128];
  const median = (place: Place) => async () => percentile(await peers.requests(place, count), 50);
  const times = await interleave(
    isQuick ? 1 : 10,
    { bare: median(peers.bare), ours: median(container.place) },
    signal,
  );
  const proxy = proxyPid(world.engine);
  const perCpuSecond: number[] = [];
  const rates = await interleave(
    isQuick ? 1 : 5,
    {
      bare: () => peers.download(peers.bare, mib),
      ours: async () => {
        const before = cpuSecondsOf(proxy);
        const rate = await peers.download(container.place, mib);
        perCpuSecond.push(mib / (cpuSecondsOf(proxy) - before));
        return rate;
      },
      gvisor: () => gvisor.download(gvisorMib),
    },
    signal,
  );
  const overhead = times.ours.map((value, round) => value - (times.bare[round] ?? 0));
  return [
    { what: 'HTTPS request on a kept connection, bare veth', unit: 'ms', values: times.bare },
    { what: 'HTTPS request on a kept connection, read, with a secret', unit: 'ms', values: times.ours },
    { what: 'HTTPS request: what reading adds', unit: 'ms', values: overhead, target: { atMost: 2 } },
    { what: 'HTTPS download, bare veth', unit: 'MiB/s', values: rates.bare },
    { what: 'HTTPS download, read', unit: 'MiB/s', values: rates.ours, target: { atLeast: 300 } },
    ratio('HTTPS download, bare veth / read', rates.bare, rates.ours),
    { what: 'HTTPS download, read, per second of CPU of the proxy', unit: 'MiB/s', values: perCpuSecond },
    { what: 'HTTPS download, read, by gVisor', unit: 'MiB/s', values: rates.gvisor },
  ];
}

function proxyPid({ runFolder }: TestEngine): number {
  const folder = join(runFolder, 'network', 'proxies');
  const [name = ''] = readdirSync(folder);
  return (JSON.parse(readFileSync(join(folder, name), 'utf8')) as { pid: number }).pid;
}

/** The CPU time of the proxy in nanoseconds, because a short download takes less than a tick of `stat`. */
function cpuSecondsOf(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`).map((thread) => {
    const [nanoseconds] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ');
    return Number(nanoseconds);
  });
  return threads.reduce((sum, each) => sum + each, 0) / 1e9;
}

/** Each sandbox may ask 200 questions a second, and 400 at once: how many the resolver answers takes several sandboxes to see. */
const ASKING_SANDBOXES = 8;
const BURST = 350;
const WINDOW = 8;

async function measureDns(
  world: HttpsInternet,
  peers: NetworkPeers,
  { isQuick, signal, note }: BenchmarkContext,
): Promise<Measurement[]> {
  await using undo = new AsyncDisposableStack();
  const guests: Guest[] = [];
  for (let started = 0; started < (isQuick ? 1 : ASKING_SANDBOXES); started++)
    guests.push(undo.use(await Guest.start(world, peers, 'container', {})));
  const alone = undo.use(await Guest.start(world, peers, 'container', {}));
  const { resolver } = peers.internet;
  // All rounds together stay within the burst limit.
  const one = async (place: Place, server: string) =>
    percentile((await peers.ask(place, server, isQuick ? 5 : 30, 1)).slice(0, -1), 50) / 1000;
  const times = await interleave(
    isQuick ? 1 : 10,
    { bare: () => one(peers.bare, resolver), ours: () => one(alone.place, alone.resolver) },
    signal,
  );
  const rates: number[] = [];
  for (let round = 0; round < (isQuick ? 1 : 5); round++) {
    signal.throwIfAborted();
    const count = isQuick ? 5 : BURST;
    // The burst limit of each has to be refilled.
    if (round > 0) await new Promise((resolve) => setTimeout(resolve, 2500));
    const took = await timed(() =>
      Promise.all(guests.map((guest) => peers.ask(guest.place, guest.resolver, count, WINDOW))),
    );
    rates.push((guests.length * count) / (took / 1000));
  }
  note(`${guests.length} sandboxes asked ${BURST} questions each`);
  return [
    { what: 'a name asked for, bare veth, the resolver itself', unit: 'ms', values: times.bare },
    { what: 'a name asked for, through ours', unit: 'ms', values: times.ours },
    { what: 'names answered', unit: '/s', values: rates, target: { atLeast: 1000 } },
  ];
}

async function measureCreate(
  { engine }: HttpsInternet,
  { isQuick, signal }: BenchmarkContext,
): Promise<Measurement[]> {
  const create = (given: Network) => async () => {
    let sandbox: TestSandbox | undefined;
    const took = await timed(async () => {
      sandbox = await startSandbox(engine, 'container', { network: given });
    });
    await sandbox?.remove();
    return took;
  };
  const rule = { direction: 'egress', action: 'allow', destination: { cidr: '192.0.2.0/24' } } as const;
  const times = await interleave(
    isQuick ? 1 : 40,
    { off: create({ enabled: false }), on: create({}), policy: create({ policy: { rules: [rule] } }) },
    signal,
  );
  const more = (ours: readonly number[]) => [percentile(ours, 50) - percentile(times.off, 50)];
  return [
    { what: 'create, no network', unit: 'ms', values: times.off },
    { what: 'create, default network', unit: 'ms', values: times.on },
    { what: 'create, policy of its own', unit: 'ms', values: times.policy },
    { what: 'create: what the network adds', unit: 'ms', values: more(times.on), target: { atMost: 5 } },
    { what: 'create: what network and policy add', unit: 'ms', values: more(times.policy) },
  ];
}

/** A sandbox, and the way into its network namespace, so that what is measured is the network and not the sandbox. */
class Guest implements AsyncDisposable {
  readonly place: Place;
  readonly resolver: string;
  readonly #sandbox: TestSandbox;
  readonly #peers: NetworkPeers;

  private constructor(sandbox: TestSandbox, peers: NetworkPeers, place: Place, resolver: string) {
    this.#sandbox = sandbox;
    this.#peers = peers;
    this.place = place;
    this.resolver = resolver;
  }

  static async start(
    world: HttpsInternet,
    peers: NetworkPeers,
    isolation: Isolation,
    given: Network,
  ): Promise<Guest> {
    const sandbox = await world.startClient(isolation, given);
    const told = await sandbox.sh(
      'sed -n "s/^nameserver //p" /etc/resolv.conf; [ -z "$SSL_CERT_FILE" ] || cat "$SSL_CERT_FILE"',
    );
    const [resolver = '', ...authorities] = told.stdout.split('\n');
    const authorityFile = join(peers.folder, `${sandbox.id}.pem`);
    await writeFile(authorityFile, authorities.join('\n'));
    await peers.program.putInto(sandbox);
    const namespace = `/proc/${sandbox.hostPids()[0]}/ns/net`;
    return new Guest(sandbox, peers, { namespace, authorityFile, resolver }, resolver);
  }

  /** From inside, for a class whose network is not the kernel's. */
  async probe(what: 'turns' | 'fetch', count: number): Promise<number[]> {
    const { publicAddress } = this.#peers.internet;
    return await this.#inside(`probe ${what} ${publicAddress} ${TCP_PORT} ${count}`);
  }

  async download(mib: number): Promise<number> {
    const line = this.#peers.curlLine('$SSL_CERT_FILE', mib).map((word) => `"${word}"`);
    return ((await this.#inside(line.join(' ')))[0] ?? 0) / 1024 / 1024;
  }

  async #inside(script: string): Promise<number[]> {
    const { code, stdout, stderr } = await this.#sandbox.sh(script);
    if (code !== 0) throw new Error(`${script} ended with ${code}: ${stderr.replaceAll(VALUE, '')}`);
    return numbersOf(stdout);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sandbox.remove();
  }
}
