import type { Target } from './installation.ts';

/** A frozen process is not continued: its supervisor has to detect and replace it. `none`: load alone, for a while. */
export interface Fault {
  readonly kind: 'kill' | 'freeze' | 'none';
  readonly targets: readonly Target[];
}

const kill = (...targets: readonly Target[]): Fault => ({ kind: 'kill', targets });
const freeze = (...targets: readonly Target[]): Fault => ({ kind: 'freeze', targets });

/** Every part once, and each kind of fault. */
export const SHORT: readonly Fault[] = [
  kill('web', 'nft'),
  kill('engine'),
  kill('svc-host'),
  kill('supervisor'),
  freeze('engine'),
  freeze('svc-host'),
  kill('tini'),
];

export const ALL: readonly Fault[] = [
  ...SHORT,
  kill('web'),
  kill('nft'),
  kill('resolver'),
  freeze('resolver'),
  kill('web', 'engine'),
  kill('engine', 'svc-host'),
  kill('supervisor', 'engine'),
  kill('supervisor', 'web', 'tini'),
  freeze('web'),
  freeze('web', 'engine'),
  freeze('tini'),
];

/** In an order of chance, each once before any comes again, until it is enough. */
export function* drawFaults(random: () => number, isEnough: (round: number) => boolean): Generator<Fault> {
  const deck: Fault[] = [];
  for (let round = 1; !isEnough(round); round++) {
    if (deck.length === 0) deck.push(...ALL);
    yield* deck.splice(Math.floor(random() * deck.length), 1);
  }
}

/** Rounds without a fault until it is enough. */
export function* drawCalm(isEnough: (round: number) => boolean): Generator<Fault> {
  for (let round = 1; !isEnough(round); round++) yield { kind: 'none', targets: [] };
}

/** Numbers from 0 to 1 that are the same for the same seed (mulberry32). */
export function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d_2b_79_f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
