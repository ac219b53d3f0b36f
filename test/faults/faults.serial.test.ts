import { test } from 'node:test';
import { generator, SHORT } from './faults.ts';
import { runRounds } from './rounds.ts';

/** Always the same moments; `make soak` takes others, and more faults. */
const SEED = 7;

test('after a kill or freeze of any process under load nothing is done twice, lost or left behind', async (t) => {
  await runRounds({ faults: SHORT, random: generator(SEED), report: (line) => t.diagnostic(line) });
});
