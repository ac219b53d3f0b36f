import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Network } from '@svc/contract';
import { HttpsInternet } from '../test/engine/https-internet.ts';
import type { TestSandbox } from '../test/engine/sandbox-fixture.ts';
import { HTTPS_HOST, HTTPS_PORT, NetworkPeers, TCP_PORT, type Place } from './network/peers.ts';
import {
  interleave,
  percentile,
  ratio,
  type Benchmark,
  type BenchmarkContext,
  type Measurement,
} from './suite/benchmark.ts';
import { timed } from './suite/measure.ts';

/** The percentile of many short exchanges that shows the path itself and not other load on the machine. */
const UNDISTURBED = 10;

/** The cost of the policy, the resolver and the proxy for outgoing traffic, compared with a plain veth. Class container. */
export const network: Benchmark = {
  name: 'network',
  description: 'TCP that a rule allows, HTTPS that the proxy reads, and names, beside a plain veth',
  async run(context) {
    await using world = await HttpsInternet.start();
    await using peers = await NetworkPeers.start(world.internet);
    return [
      ...(await measureTcp(world, peers, context)),
      ...(await measureHttps(world, peers, context)),
      ...(await measureDns(world, peers, context)),
    ];
  },
};

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
  await using guest = await Guest.start(world, peers, allowed);
  const roundTrips = async (place: Place) =>
    percentile(await peers.roundTrips(place, isQuick ? 20 : 2000), UNDISTURBED);
  const times = await interleave(
    isQuick ? 1 : 15,
    { bare: () => roundTrips(peers.bare), ours: () => roundTrips(guest.place) },
    signal,
  );
  return [
    { what: 'TCP, 32 bytes there and back, bare veth', unit: 'µs', values: times.bare },
    { what: 'TCP, 32 bytes there and back, allowed by a rule', unit: 'µs', values: times.ours },
    ratio('TCP there and back / bare veth', times.ours, times.bare, 'network-tcp'),
  ];
}

async function measureHttps(
  world: HttpsInternet,
  peers: NetworkPeers,
  { isQuick, signal }: BenchmarkContext,
): Promise<Measurement[]> {
  const tls = { intercepted_ports: [HTTPS_PORT], upstream_ca_cert: [peers.certificate] };
  const allowed = { allowed_hosts: [{ type: 'exact', value: HTTPS_HOST }] };
  await using guest = await Guest.start(world, peers, world.network({ tls }, allowed));
  const request = async (place: Place) => percentile(await peers.requests(place, isQuick ? 10 : 500), 50);
  const times = await interleave(
    isQuick ? 1 : 10,
    { bare: () => request(peers.bare), ours: () => request(guest.place) },
    signal,
  );
  const mib = isQuick ? 8 : 512;
  const rates = await interleave(
    isQuick ? 1 : 5,
    { bare: () => peers.download(peers.bare, mib), ours: () => peers.download(guest.place, mib) },
    signal,
  );
  const added = times.ours.map((value, round) => value - (times.bare[round] ?? 0));
  return [
    { what: 'HTTPS request on a kept connection, bare veth', unit: 'ms', values: times.bare },
    {
      what: 'HTTPS request: what the proxy adds, with a secret',
      unit: 'ms',
      values: added,
      promise: 'https-request',
    },
    { what: 'HTTPS download, bare veth', unit: 'MiB/s', values: rates.bare },
    {
      what: 'HTTPS download through the proxy',
      unit: 'MiB/s',
      values: rates.ours,
      promise: 'https-download',
    },
  ];
}

/** Each sandbox may ask 200 questions a second, and 400 at once: how many the resolver answers takes several sandboxes to see. */
const ASKING_SANDBOXES = 8;
const BURST = 350;
const WINDOW = 8;
const REFILL_MS = 2500;

async function measureDns(
  world: HttpsInternet,
  peers: NetworkPeers,
  { isQuick, signal }: BenchmarkContext,
): Promise<Measurement[]> {
  await using undo = new AsyncDisposableStack();
  const guests: Guest[] = [];
  while (guests.length < (isQuick ? 1 : ASKING_SANDBOXES))
    guests.push(undo.use(await Guest.start(world, peers, {})));
  const rates: number[] = [];
  for (let round = 0; round < (isQuick ? 1 : 5); round++) {
    const count = isQuick ? 5 : BURST;
    // The burst limit of each has to be refilled.
    if (round > 0) await delay(REFILL_MS, undefined, { signal });
    const took = await timed(() => Promise.all(guests.map(({ place }) => peers.ask(place, count, WINDOW))));
    rates.push((guests.length * count) / (took / 1000));
  }
  return [{ what: 'names answered', unit: '/s', values: rates, promise: 'names' }];
}

/** A sandbox, and the way into its network namespace, so that what is measured is the network and not the sandbox. */
class Guest implements AsyncDisposable {
  readonly place: Place;
  readonly #sandbox: TestSandbox;

  private constructor(sandbox: TestSandbox, place: Place) {
    this.#sandbox = sandbox;
    this.place = place;
  }

  static async start(world: HttpsInternet, peers: NetworkPeers, given: Network): Promise<Guest> {
    const sandbox = await world.startClient('container', given);
    const output = await sandbox.sh(
      'sed -n "s/^nameserver //p" /etc/resolv.conf; [ -z "$SSL_CERT_FILE" ] || cat "$SSL_CERT_FILE"',
    );
    const [resolver = '', ...authorities] = output.stdout.split('\n');
    const authorityFile = join(peers.folder, `${sandbox.id}.pem`);
    await writeFile(authorityFile, authorities.join('\n'));
    const namespace = `/proc/${sandbox.hostPids()[0]}/ns/net`;
    return new Guest(sandbox, { namespace, authorityFile, resolver });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sandbox.remove();
  }
}
