import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { waitUntil } from '@svc/contract/testing';
import { assertAgreement } from './agreement.ts';
import type { Fault } from './faults.ts';
import { Installation } from './installation.ts';
import { Load } from './load.ts';

const LONGEST_WAIT_MS = 800;
const CALM_MS = 30_000;
/** A frozen process is noticed after seconds; svc-host by the next call that needs it. */
const NOTICE_MS = 120_000;

export interface RoundsOptions {
  readonly faults: Iterable<Fault>;
  /** Says when each of them strikes, as numbers from 0 to 1. */
  readonly random: () => number;
  readonly report: (line: string) => void;
  readonly begun?: (installation: Installation) => void;
}

/** Faults at random moments under a mixed load, and what must be true after each, and after all of them. */
export async function runRounds({ faults, random, report, begun }: RoundsOptions): Promise<void> {
  const installation = await Installation.start();
  begun?.(installation);
  let left: readonly string[] = [];
  try {
    const load = await Load.start(installation.url);
    let round = 0;
    for (const fault of faults) {
      round += 1;
      await delay(random() * LONGEST_WAIT_MS);
      const startedAt = performance.now();
      const seconds = () => ((performance.now() - startedAt) / 1000).toFixed(1);
      const what = `round ${round}: ${fault.kind} ${fault.targets.join(' and ')}`;
      try {
        await strike(installation, fault);
        await installation.launch();
        const back = seconds();
        await load.hold();
        await assertAgreement(installation);
        load.release();
        report(`${what}; back after ${back} s, agreed after ${seconds()} s, ${load.calls} calls`);
      } catch (error) {
        throw new Error(`${what}: ${installation.lastWords()}`, { cause: error });
      }
    }
    await load.finish();
    await assertAgreement(installation);
  } finally {
    left = await installation.destroy();
  }
  assert.deepEqual(left, [], 'nothing is left on the host');
}

async function strike(installation: Installation, { kind, targets }: Fault): Promise<void> {
  if (kind === 'none') return await delay(CALM_MS);
  const find = () => targets.flatMap((target) => installation.pidsOf(target));
  // A part that is just being started anew is not there to be hit.
  let pids = find();
  await waitUntil(() => (pids = find()).length >= targets.length, { what: `${targets.join(' and ')} run` });
  // All at once, before the first death has effects.
  for (const pid of pids) signal(pid, kind === 'kill' ? 'SIGKILL' : 'SIGSTOP');
  const struck = () => find().filter((pid) => pids.includes(pid));
  try {
    const what = `${targets.join(' and ')} ended`;
    await waitUntil(() => struck().length === 0, { timeoutMs: NOTICE_MS, what });
  } finally {
    // Not detected: processes that are left must be able to handle SIGTERM.
    for (const pid of struck()) signal(pid, 'SIGCONT');
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It went with another one.
  }
}
