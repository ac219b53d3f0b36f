import assert from 'node:assert/strict';
import { test } from 'node:test';
import { QueryRateLimit } from './query-rate-limit.ts';

const scopeOf = (client: string) => client.split(' ')[0] ?? '';

test('sandboxes of one scope share its rate, and queries of another scope are not dropped', () => {
  const rates = new QueryRateLimit(scopeOf);
  let read = 0;
  for (let sandbox = 0; sandbox < 100; sandbox++)
    for (let question = 0; question < 400; question++) if (rates.tryTake(`loud ${sandbox}`)) read += 1;
  assert.ok(read >= 4000 && read < 20_000, `${read} of 40,000 were read`);
  for (let question = 0; question < 400; question++) assert.ok(rates.tryTake('quiet 1'));
});

test('over TCP a query waits for a token of its sandbox and of its scope', async () => {
  const rates = new QueryRateLimit(scopeOf);
  const waits = Array.from({ length: 20 }, (_, sandbox) =>
    Array.from({ length: 400 }, () => rates.waitForToken(`loud ${sandbox}`)),
  ).flat();
  let had = 0;
  for (const wait of waits) void wait.then(() => (had += 1));
  await rates.waitForToken('quiet 1');
  assert.ok(had < 8000, `${had} of 8,000 were sent`);
  await waits[3900];
});
