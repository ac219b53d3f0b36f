import { readFileSync } from 'node:fs';
import { randomInt } from 'node:crypto';
import { ALL, drawFaults, generator } from './faults.ts';
import type { Installation } from './installation.ts';
import { runRounds } from './rounds.ts';

/**
 * `make soak [MINUTES=10] [SEED=number]`: many rounds, and how much memory the two long-lived processes had meanwhile. Ctrl-C ends it
 * after the round that is under way, with everything cleared.
 */
const MINUTES = Number(process.argv[2] ?? 10);
const SEED = Number(process.argv[3] ?? randomInt(1, 1_000_000));
const SAMPLE_MS = 10_000;
const ROWS = 12;

interface Sample {
  readonly second: number;
  readonly engineMib: number | null;
  readonly webMib: number | null;
}

const samples: Sample[] = [];
const startedAt = performance.now();
const elapsedMs = () => performance.now() - startedAt;
let timer: NodeJS.Timeout | undefined;
let isInterrupted = false;
process.on('SIGINT', () => (isInterrupted = true));

console.log(`seed ${SEED}, ${MINUTES} minutes and at least every fault once`);
try {
  const random = generator(SEED);
  const isEnough = (round: number) => isInterrupted || (round > ALL.length && elapsedMs() > MINUTES * 60_000);
  await runRounds({
    faults: drawFaults(random, isEnough),
    random,
    tell: (line) => console.log(line),
    begun: (installation) => {
      timer = setInterval(() => samples.push(sampleOf(installation)), SAMPLE_MS);
    },
  });
  console.log('every check held');
} finally {
  clearInterval(timer);
  printTable();
}

function sampleOf(installation: Installation): Sample {
  const engineMib = residentMib(installation.pidsOf('engine')[0]);
  const webMib = residentMib(installation.pidsOf('web')[0]);
  return { second: Math.round(elapsedMs() / 1000), engineMib, webMib };
}

/** Null while it is being started again. */
function residentMib(pid: number | undefined): number | null {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Math.round(Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024);
  } catch {
    return null;
  }
}

/** Few rows over the whole time: a leak is a column that grows from row to row. A process that was killed begins anew. */
function printTable(): void {
  console.log('\n   time   engine MiB   web MiB');
  const step = Math.max(1, Math.ceil(samples.length / ROWS));
  for (const { second, engineMib, webMib } of samples.filter((_, index) => index % step === 0)) {
    const columns = [
      `${second} s`.padStart(7),
      String(engineMib ?? '-').padStart(12),
      String(webMib ?? '-').padStart(9),
    ];
    console.log(columns.join(' '));
  }
}
