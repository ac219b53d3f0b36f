import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import pino from 'pino';
import { WarmPool } from './warm-pool.ts';

test('targets that cannot be filled are tried again once per pause, however many they are and however long it lasts', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const asked: string[] = [];
  const targets = ['a', 'b', 'c'].map((reference) => ({ reference, count: 2 }));
  const pool = new WarmPool({ logger: pino({ level: 'silent' }) }, targets, (reference) => {
    asked.push(reference);
    return Promise.reject(new Error('there is no such image'));
  });
  pool.start();
  for (let round = 1; round <= 6; round++) {
    // Every rejection has been taken note of when the loop comes round.
    await setImmediate();
    assert.equal(asked.length, round * targets.length, `round ${round}`);
    t.mock.timers.tick(5000);
  }
  await pool.close();
});
