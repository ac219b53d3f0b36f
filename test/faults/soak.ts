import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { ALL, drawCalm, drawFaults, generator } from './faults.ts';
import { MemoryLog } from './memory-log.ts';
import { runRounds } from './rounds.ts';

/**
 * `make soak [MINUTES=10] [SEED=number] [CALM=1]`: many rounds, and how much memory the long-lived processes had meanwhile. Calm: the
 * same load and checks without a fault, so that no process begins anew and memory that only grows can be seen. Ctrl-C ends it after the
 * round that is under way, with everything cleared.
 */
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { calm: { type: 'boolean', default: false } },
});
const MINUTES = Number(positionals[0] ?? 10);
const SEED = Number(positionals[1] ?? randomInt(1, 1_000_000));

const log = new MemoryLog();
const startedAt = performance.now();
const isOver = () => performance.now() - startedAt > MINUTES * 60_000;
let isInterrupted = false;
process.on('SIGINT', () => (isInterrupted = true));

console.log(
  `seed ${SEED}, ${MINUTES} minutes${values.calm ? ' without faults' : ' and at least every fault once'}`,
);
try {
  const random = generator(SEED);
  const isEnough = (round: number) => isInterrupted || (round > (values.calm ? 0 : ALL.length) && isOver());
  await runRounds({
    faults: values.calm ? drawCalm(isEnough) : drawFaults(random, isEnough),
    random,
    report: (line) => console.log(line),
    begun: (installation) => log.start(installation, (line) => console.log(line)),
  });
  console.log('every check held');
} finally {
  log.stop();
  for (const line of log.summary()) console.log(line);
}
