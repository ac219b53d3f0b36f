import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventLog } from './event-log.ts';

const soon = () => AbortSignal.timeout(100_000);

test('a reader gets what was kept after its place, then what comes, each once and in order', async () => {
  const log = new EventLog();
  for (const id of ['a', 'b', 'c']) log.add('created', id);
  const all = log.read({ after: 0 }, soon());
  const first = await all.next();
  assert.equal(first.value?.sandboxId, 'a');
  const rest = log.read({ after: first.value?.sequence ?? 0 }, soon());
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
  const reading = log.read({}, stop.signal);
  const next = reading.next();
  log.add('created', 'after');
  assert.equal((await next).value?.sandboxId, 'after');
  const last = reading.next();
  stop.abort();
  assert.equal((await last).done, true);
});

test('a reader that stands still is not waited for and goes on with what is still kept', async () => {
  const log = new EventLog();
  const reading = log.read({}, soon());
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
  const { value } = await log.read({ after: Date.now() * 2000 }, soon()).next();
  assert.equal(value?.type, 'engine_started');
});

test('a reader of some types gets only these, and continues behind skipped ones', async () => {
  const log = new EventLog();
  const types = ['policy_denied', 'oom'] as const;
  const coming = log.read({ types }, soon()).next();
  for (const type of ['created', 'running', 'oom', 'removed'] as const) log.add(type, type);
  assert.equal((await coming).value?.type, 'oom');
  const kept = log.read({ after: 0, types }, soon());
  assert.equal((await kept.next()).value?.type, 'oom');
  const next = kept.next();
  log.add('stopped', 'one');
  log.add('policy_denied', 'one');
  assert.equal((await next).value?.type, 'policy_denied');
});
