import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventLog } from './event-log.ts';

const soon = () => AbortSignal.timeout(100_000);

test('a reader gets what was kept after its place, then what comes, each once and in order', async () => {
  const log = new EventLog();
  for (const id of ['a', 'b', 'c']) log.add('created', id);
  const all = log.read(0, soon());
  const first = await all.next();
  assert.equal(first.value?.sandboxId, 'a');
  const rest = log.read(first.value?.sequence, soon());
  assert.equal((await rest.next()).value?.sandboxId, 'b');
  assert.equal((await rest.next()).value?.sandboxId, 'c');
  const coming = rest.next();
  log.add('removed', 'd');
  assert.equal((await coming).value?.sandboxId, 'd');
});

test('without a place only what comes is read, and the signal ends it', async () => {
  const log = new EventLog();
  log.add('created', 'before');
  const stop = new AbortController();
  const reading = log.read(undefined, stop.signal);
  const next = reading.next();
  log.add('created', 'after');
  assert.equal((await next).value?.sandboxId, 'after');
  const last = reading.next();
  stop.abort();
  assert.equal((await last).done, true);
});

test('a reader that stands still is not waited for and goes on with what is still kept', async () => {
  const log = new EventLog();
  const reading = log.read(undefined, soon());
  const first = reading.next();
  log.add('created', 'first');
  await first;
  for (let count = 1; count <= 25_000; count++) log.add('created', String(count));
  assert.equal((await reading.next()).value?.sandboxId, '15001', 'the newest 10,000 are kept');
  assert.equal((await reading.next()).value?.sandboxId, '15002');
});

test('a place from before the clock was set back gets all that is kept', async () => {
  const log = new EventLog();
  log.add('engine_started', null);
  const { value } = await log.read(Date.now() * 2000, soon()).next();
  assert.equal(value?.type, 'engine_started');
});
