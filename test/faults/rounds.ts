import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { readStatus } from '@svc/server/admin';
import { waitUntil } from '../engine/wait-until.ts';
import { Installation, type Target } from './installation.ts';
import { Load } from './load.ts';

type Fault = { readonly kind: 'kill' | 'freeze'; readonly targets: readonly Target[] };

/** What is killed, alone and together. The supervisor comes last: nobody watches an engine that its successor took up. */
const KILLS: readonly (readonly Target[])[] = [
  ['web'],
  ['engine'],
  ['tini'],
  ['svc-host'],
  ['nft'],
  ['egress'],
  ['web', 'engine'],
  ['engine', 'svc-host'],
  ['web', 'nft'],
];
const LAST: readonly Target[] = ['supervisor'];
/**
 * What is stopped for a while, and must be noticed: add to these what has somebody who watches it, such as `['engine']`.
 * A frozen process that nobody watches keeps its callers waiting until it goes on, which is no more than FREEZE_MS here.
 */
const FREEZES: readonly (readonly Target[])[] = [];
const FREEZE_MS = 3000;
const LONGEST_WAIT_MS = 800;

export interface RoundsOptions {
  readonly seed: number;
  /** Asked before each round. */
  readonly isEnough: (round: number) => boolean;
  readonly tell: (line: string) => void;
  readonly begun?: (installation: Installation) => void;
}

/** Faults at random moments under a mixed load, and what must be true after each, and after all of them. */
export async function runRounds({ seed, isEnough, tell, begun }: RoundsOptions): Promise<void> {
  const random = generator(seed);
  const installation = await Installation.start();
  begun?.(installation);
  let left: readonly string[] = [];
  try {
    const load = await Load.start(installation.url);
    const faults = [
      ...KILLS.map((targets): Fault => ({ kind: 'kill', targets })),
      ...FREEZES.map((targets): Fault => ({ kind: 'freeze', targets })),
    ];
    const deck: Fault[] = [];
    for (let round = 1; ; round++) {
      const isLast = isEnough(round);
      // Each once before any comes again.
      if (deck.length === 0) deck.push(...faults);
      const [chosen] = deck.splice(Math.floor(random() * deck.length), 1);
      const fault = isLast || chosen === undefined ? ({ kind: 'kill', targets: LAST } as const) : chosen;
      await delay(random() * LONGEST_WAIT_MS);
      const startedAt = performance.now();
      await hit(installation, fault);
      await installation.launch();
      const backMs = performance.now() - startedAt;
      await load.hold();
      await assertAgreement(installation);
      load.release();
      const seconds = (backMs / 1000).toFixed(1);
      tell(
        `round ${round}: ${fault.kind} ${fault.targets.join(' and ')}; back after ${seconds} s, ${load.calls} calls`,
      );
      if (isLast) break;
    }
    await load.finish();
    await assertAgreement(installation);
  } finally {
    left = await installation.destroy();
  }
  assert.deepEqual(left, [], 'nothing is left on the host');
}

async function hit(installation: Installation, { kind, targets }: Fault): Promise<void> {
  // All at once, and then whatever follows from it.
  const pids = targets.flatMap((target) => installation.pidsOf(target));
  for (const pid of pids) signal(pid, kind === 'kill' ? 'SIGKILL' : 'SIGSTOP');
  if (kind === 'kill') {
    const isLeft = () =>
      targets.some((target) => installation.pidsOf(target).some((pid) => pids.includes(pid)));
    // Whoever has to start the next one sees their end too.
    return await waitUntil(() => !isLeft(), { what: `${targets.join(' and ')} ended` });
  }
  await delay(FREEZE_MS);
  for (const pid of pids) signal(pid, 'SIGCONT');
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It went with another one.
  }
}

/** The records say what is the case. */
async function assertAgreement(installation: Installation): Promise<void> {
  let mismatch = '';
  await installation.settled();
  // What is written down is a moment behind.
  for (let attempt = 0; attempt < 200; attempt++) {
    const status = await readStatus(installation.folder).catch(() => undefined);
    const views = await installation.engine.listSandboxes().catch(() => undefined);
    const recorded = (status?.sandboxes ?? [])
      .filter(({ state }) => state === 'running')
      .map(({ name }) => name);
    const real = (views ?? []).filter(({ state }) => state === 'running');
    if (status !== undefined && views !== undefined && recorded.length === real.length) return;
    mismatch = `recorded as running: ${recorded.join(', ')}; running: ${real.length}`;
    await delay(50);
  }
  assert.fail(mismatch);
}

/** Numbers from 0 to 1 that are the same for the same seed (mulberry32). */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d_2b_79_f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
