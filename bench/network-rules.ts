import type { Network } from '@svc/contract';
import type { LinuxNetwork } from '../packages/engine/src/network/linux-network.ts';
import type { Slot } from '../packages/engine/src/network/network.ts';
import { resolvePolicy } from '../packages/engine/src/policy/index.ts';
import { TestEngine } from '../packages/engine/src/testing/test-engine.ts';
import { interleave, percentile, type BenchmarkContext, type Measurement } from './benchmark.ts';
import { timed } from './measure.ts';
import { TCP_PORT, UNDISTURBED, type NetworkPeers, type Place } from './network-peers.ts';

const SANDBOXES = 200;
const RULES = 50;
/** Many short runs, because the CPU that the scheduler chooses for a process would otherwise decide the result. */
const ROUNDS = 60;
const EXCHANGES = { turns: 300, dials: 50 } as const;

/** Only the network of an engine, because the programs of the sandboxes do not matter. */
export async function measureManyRules(
  peers: NetworkPeers,
  { isQuick, signal }: BenchmarkContext,
): Promise<Measurement[]> {
  const count = isQuick ? 5 : SANDBOXES;
  await using few = await RuledSlots.start(101, 1, peers);
  await using many = await RuledSlots.start(102, count, peers);
  const sets = [await many.setAll()];
  await few.setAll();
  const loads: number[] = [];
  for (let round = 0; round < (isQuick ? 1 : 3); round++) loads.push(await many.reload());
  const one = (place: Place, what: 'turns' | 'dials') => async () =>
    percentile(await peers.probe(place, what, isQuick ? 5 : EXCHANGES[what]), UNDISTURBED);
  const times = await interleave(
    isQuick ? 1 : ROUNDS,
    {
      fewTurn: one(few.place, 'turns'),
      manyTurn: one(many.place, 'turns'),
      againTurn: one(few.place, 'turns'),
      fewDial: one(few.place, 'dials'),
      manyDial: one(many.place, 'dials'),
      againDial: one(few.place, 'dials'),
    },
    signal,
  );
  const size = `${count} × ${RULES} rules`;
  const target = { atMost: 1.1 };
  return [
    { what: `${size} set one sandbox at a time`, unit: 's', values: sets, target: { atMost: 2 } },
    { what: `start of a network with ${size}`, unit: 's', values: loads, target: { atMost: 2 } },
    { what: `TCP there and back, 1 × ${RULES} rules`, unit: 'µs', values: times.fewTurn },
    { what: `TCP there and back, ${size}`, unit: 'µs', values: times.manyTurn },
    { ...roundByRound('TCP there and back, many / one', times.manyTurn, times.fewTurn), target },
    roundByRound('TCP there and back, one / the same one again', times.fewTurn, times.againTurn),
    { what: `TCP connection, 1 × ${RULES} rules`, unit: 'µs', values: times.fewDial },
    { what: `TCP connection, ${size}`, unit: 'µs', values: times.manyDial },
    { ...roundByRound('TCP connection, many / one', times.manyDial, times.fewDial), target },
    roundByRound('TCP connection, one / the same one again', times.fewDial, times.againDial),
  ];
}

/** Ratios of measurements that directly followed each other, under the same load. The ratio of equal ones, ideally 1, shows the accuracy. */
function roundByRound(what: string, ours: readonly number[], floor: readonly number[]): Measurement {
  return { what, unit: '×', values: ours.map((value, round) => value / (floor[round] ?? Number.NaN)) };
}

class RuledSlots implements AsyncDisposable {
  readonly #engine: TestEngine;
  readonly #slots: readonly Slot[];
  readonly #policy: ReturnType<typeof resolvePolicy>;
  #network: LinuxNetwork;

  private constructor(engine: TestEngine, opened: LinuxNetwork, slots: readonly Slot[], given: Network) {
    this.#engine = engine;
    this.#network = opened;
    this.#slots = slots;
    this.#policy = resolvePolicy(given);
  }

  static async start(octet: number, count: number, peers: NetworkPeers): Promise<RuledSlots> {
    const engine = await TestEngine.make(octet, { prepared: { loopback: 0, public: 0 } });
    const opened = engine.open();
    await opened.recover([]);
    const slots: Slot[] = [];
    while (slots.length < count) slots.push(await opened.acquire('public', AbortSignal.timeout(100_000)));
    return new RuledSlots(engine, opened, slots, policyFor(peers.internet.publicAddress));
  }

  /** The namespace of the last sandbox. */
  get place(): Place {
    return { namespace: this.#slots.at(-1)?.networkNamespace ?? '', authorityFile: '' };
  }

  async setAll(): Promise<number> {
    const took = await timed(() =>
      Promise.all(this.#slots.map((slot) => this.#network.setPolicy(slot, this.#policy))),
    );
    return took / 1000;
  }

  /** Restores all rules in one transaction, like an engine after a restart. */
  async reload(): Promise<number> {
    this.#network = this.#engine.open();
    const kept = this.#slots.map(({ key }) => ({ key, policy: this.#policy }));
    return (await timed(() => this.#network.recover(kept))) / 1000;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#engine[Symbol.asyncDispose]();
  }
}

/** Rules of which the last one matches. */
function policyFor(address: string): Network {
  const others = Array.from({ length: RULES - 1 }, (_, n) => ({
    direction: 'egress' as const,
    action: n % 2 === 0 ? ('allow' as const) : ('deny' as const),
    destination: { cidr: `198.18.${n}.0/24` },
    protocols: ['tcp' as const],
    ports: [{ start: 1000 + n, end: 2000 + n }],
  }));
  const fitting = {
    direction: 'egress' as const,
    action: 'allow' as const,
    destination: { cidr: `${address}/32` },
    ports: [{ start: TCP_PORT, end: TCP_PORT }],
  };
  return { policy: { rules: [...others, fitting] } };
}
