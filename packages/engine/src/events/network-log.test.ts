import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import type { NetworkDecision, NetworkLogEntry, ReadNetworkLog } from '@svc/contract/orchestrator';
import { NetworkLog } from './network-log.ts';

const decision = (change: Partial<NetworkDecision> = {}): NetworkDecision => ({
  kind: 'tcp',
  verdict: 'deny',
  host: null,
  address: '10.0.0.1',
  port: 22,
  protocol: 'tcp',
  decidedBy: 'default',
  rule: null,
  ...change,
});

async function read(log: NetworkLog, options: ReadNetworkLog = {}) {
  const entries: NetworkLogEntry[] = [];
  let leftOut = 0;
  for await (const line of log.read(options, AbortSignal.timeout(60_000), () => true)) {
    if ('entry' in line) entries.push(line.entry);
    else ({ leftOut } = line);
  }
  return { entries, leftOut };
}

test('repeated decisions are one entry with a count, which is shown and reported again after a while', async (t) => {
  mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-01-01T00:00:00Z') });
  t.after(() => mock.timers.reset());
  const log = new NetworkLog();
  assert.equal(log.note(decision(), 'why', 1), true);
  assert.equal(log.note(decision(), 'why', 4), false);
  const [first] = (await read(log)).entries;
  assert.deepEqual([first?.count, first?.reason], [5, 'why']);
  assert.deepEqual((await read(log, { after: first?.sequence ?? 0 })).entries, []);
  mock.timers.tick(11_000);
  assert.equal(log.note(decision(), 'why', 1), false, 'shown again, not told again');
  const [again] = (await read(log, { after: first?.sequence ?? 0 })).entries;
  assert.deepEqual(
    [again?.count, again?.firstTime, again?.time],
    [6, '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:11.000Z'],
  );
  mock.timers.tick(60_000);
  assert.equal(log.note(decision(), 'why', 1), true);
  assert.equal((await read(log)).entries.length, 1);
  assert.equal(log.note(decision({ rule: 1, decidedBy: 'rule' }), 'why', 1), true, 'another rule decided');
  assert.equal((await read(log)).entries.length, 2);
});

test('the log is bounded: the oldest entries are dropped and counted, and allowed ones never displace denied ones', async () => {
  const log = new NetworkLog();
  for (let port = 1; port <= 300; port++) log.note(decision({ port }), 'why', 2);
  for (let port = 1; port <= 300; port++) log.note(decision({ port, verdict: 'allow' }), 'why', 1);
  log.leaveOut(1000);
  const { entries, leftOut } = await read(log, { verdict: 'deny' });
  assert.deepEqual([entries.length, entries[0]?.port, leftOut], [256, 45, 44 * 2 + 1000]);
  assert.equal((await read(log, { verdict: 'allow' })).entries.length, 128);
});

test('a follower gets new entries until the end, also with a cursor from before the clock was set back', async () => {
  const log = new NetworkLog();
  let isOver = false;
  const lines = log.read(
    { follow: true, after: Date.now() * 2000 },
    AbortSignal.timeout(60_000),
    () => isOver,
  );
  const first = lines.next();
  log.note(decision(), 'why', 1);
  const { value } = await first;
  assert.ok(value !== undefined && 'entry' in value);
  const second = lines.next();
  log.leaveOut(7);
  assert.deepEqual((await second).value, { leftOut: 7 });
  const last = lines.next();
  isOver = true;
  log.wake();
  assert.equal((await last).done, true);
});

test('words that a sandbox chose cannot steer a terminal, nor grow', async () => {
  const log = new NetworkLog();
  const path = '/\u001b]0;x\u0007'.padEnd(5000, 'a');
  const secret = { action: 'block', method: 'GET', path, envVars: ['KEY'] };
  log.note(decision({ kind: 'dns', host: '\u001b[2Jevil\u009b.example', secret }), '\u001b[2J', 1);
  const [entry] = (await read(log)).entries;
  assert.equal(entry?.host, '?[2Jevil?.example');
  assert.equal(entry?.reason, '?[2J');
  assert.ok(entry?.secret?.path.startsWith('/?]0;x?aaa') && entry.secret.path.length < 300);
});
