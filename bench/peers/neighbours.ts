import { percentile } from '../suite/benchmark.ts';
import type { Row } from '../suite/documents.ts';
import { timed } from '../suite/measure.ts';
import { createUseRemove, type Contender } from './contenders.ts';

const NEIGHBOURS = 4;

/** What each neighbour does all the time, as a script of a shell. */
const LOADS = {
  compute: 'while :; do :; done',
  fork: 'while :; do /bin/true; done',
  write: 'while :; do /bin/dd if=/dev/zero of=/file bs=1M count=64; done',
} as const;

interface Outcome {
  /** p99 of `/bin/true` in a container that does nothing else, and p50 of a create to first output. Milliseconds. */
  readonly exec: number;
  readonly create: number;
  readonly failures: number;
}

/** The outcome of each contender, beside neighbours of its own that are busy all the time. */
export async function measureNeighbours(
  contenders: readonly Contender[],
  isQuick: boolean,
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  const failures = contenders.map(() => 0);
  for (const [load, script] of Object.entries(LOADS)) {
    const what = `beside ${NEIGHBOURS} that ${load}`;
    console.error(what);
    const outcomes: Outcome[] = [];
    for (const contender of contenders) outcomes.push(await measureOne(contender, script, isQuick));
    for (const [index, outcome] of outcomes.entries())
      failures[index] = (failures[index] ?? 0) + outcome.failures;
    rows.push(
      { what: `/bin/true ${what}, p99, ms`, values: outcomes.map(({ exec }) => exec) },
      { what: `create to first output ${what}, ms`, values: outcomes.map(({ create }) => create) },
    );
  }
  return [...rows, { what: `of these calls beside neighbours failed`, values: failures }];
}

async function measureOne(contender: Contender, script: string, isQuick: boolean): Promise<Outcome> {
  const quiet = await contender.create();
  const busy: string[] = [];
  for (let count = 0; count < (isQuick ? 1 : NEIGHBOURS); count++) busy.push(await contender.create());
  for (const id of busy)
    await contender.run(id, ['/bin/sh', '-c', `(${script}) < /dev/null > /dev/null 2>&1 &`]);
  let failures = 0;
  const repeat = async (rounds: number, work: () => Promise<number>) => {
    const values: number[] = [];
    for (let round = 0; round < rounds; round++)
      try {
        values.push(await work());
      } catch (error) {
        failures++;
        console.error(`${contender.name}: ${String(error)}`);
      }
    return values;
  };
  const execs = await repeat(isQuick ? 2 : 100, () => timed(() => contender.run(quiet, ['/bin/true'])));
  const creates = await repeat(isQuick ? 1 : 10, () => createUseRemove(contender));
  for (const id of [quiet, ...busy]) await contender.remove(id);
  return { exec: percentile(execs, 99), create: percentile(creates, 50), failures };
}
