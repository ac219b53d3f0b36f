import { test } from 'node:test';
import { runRounds } from './rounds.ts';

/** Always the same ones; `make soak` takes others. */
const SEED = 7;
const ROUNDS = 6;

test('whatever is killed under load, nothing is done twice, lost or left behind', async (t) => {
  t.diagnostic(`seed ${SEED}`);
  await runRounds({ seed: SEED, isEnough: (round) => round >= ROUNDS, tell: (line) => t.diagnostic(line) });
});
