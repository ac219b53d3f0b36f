import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import {
  BATCH_DEADLINE_MS,
  loadRuleset,
  MAX_EXCHANGES,
  Nft,
  RulesetLoads,
  sayRefusal,
  textBefore,
  unnamedFile,
} from './nft.ts';
import { command } from '../testing/command.ts';

async function tableWithSet(t: TestContext): Promise<string> {
  const table = `svc_nft${randomBytes(4).toString('hex')}`;
  await loadRuleset(`add table inet ${table}\nadd set inet ${table} numbers { type inet_service; }\n`);
  t.after(() => command('nft', 'delete', 'table', 'inet', table));
  return table;
}

const numbersIn = async (table: string) =>
  [...(await command('nft', 'list', 'set', 'inet', table, 'numbers')).matchAll(/\b\d{4}\b/g)].map(
    ([text]) => text,
  );

test('commands given together take effect, and only the one that is wrong fails', async (t) => {
  const table = await tableWithSet(t);
  const nft = new Nft();
  t.after(() => nft.close());
  const outcomes = await Promise.allSettled([
    nft.run(`add element inet ${table} numbers { 1001 }`),
    nft.run(`add element inet ${table} nosuchset { 1002 }`),
    nft.run(`add element inet ${table} numbers { 1003 }`),
  ]);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  assert.deepEqual(await numbersIn(table), ['1001', '1003']);
  await assert.rejects(nft.run('nonsense'), /nft refused a change: Error: syntax error/);
});

test('rules are read from a regular file without a name, because nft 1.0.9 refuses sockets', async (t) => {
  const file = await unnamedFile('add table inet t\n');
  t.after(() => file.close());
  const status = await file.stat();
  assert.deepEqual([status.isFile(), status.nlink, status.mode & 0o777], [true, 0, 0o600]);
  const { stdout } = spawnSync('cat', { stdio: [file.fd, 'pipe', 'inherit'], encoding: 'utf8' });
  assert.equal(stdout, 'add table inet t\n');
});

test('rules that take too long to load are not loaded later either', async (t) => {
  const table = await tableWithSet(t);
  const many = Array.from({ length: 200_000 }, (_, n) => `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`);
  const slow = `add set inet ${table} slow { type ipv4_addr; elements = { ${many.join(', ')} }; }\n`;
  await assert.rejects(loadRuleset(slow, 20), /nft took longer than 20 ms to load the rules/);
  await assert.rejects(command('nft', 'list', 'set', 'inet', table, 'slow'), /No such file/);
});

test('files given together take effect, and only the one that is wrong fails', async (t) => {
  const table = await tableWithSet(t);
  const loads = new RulesetLoads();
  const outcomes = await Promise.allSettled([
    loads.load(`add element inet ${table} numbers { 1001 }\n`),
    loads.load(`add element inet ${table} numbers { 1002 }\nadd element inet ${table} nosuchset { 1 }\n`),
    loads.load(`add element inet ${table} numbers { 1003 }`),
  ]);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  assert.deepEqual(await numbersIn(table), ['1001', '1003']);
});

test('many commands in a row and at once all arrive', async (t) => {
  const table = await tableWithSet(t);
  const nft = new Nft();
  t.after(() => nft.close());
  await Promise.all(
    Array.from({ length: 300 }, (_, n) => nft.run(`add element inet ${table} numbers { ${2000 + n} }`)),
  );
  assert.equal((await numbersIn(table)).length, 300);
});

test('no nft is held for ever: it keeps every line, and looks through all of them with each', async (t) => {
  const table = await tableWithSet(t);
  const nft = new Nft();
  t.after(() => nft.close());
  const held = new Set<number>();
  for (let n = 0; n < MAX_EXCHANGES + 1; n += 1) {
    await nft.run(`add element inet ${table} numbers { ${1000 + n} }`);
    if (n === 0 || n >= MAX_EXCHANGES - 1) for (const pid of await childrenNamed('nft')) held.add(pid);
  }
  assert.equal(held.size, 2);
  assert.equal((await numbersIn(table)).length, MAX_EXCHANGES + 1);
  const [first] = [...held];
  await waitUntil(async () => !(await childrenNamed('nft')).includes(first ?? 0), {
    what: 'the first one has ended',
  });
});

test('when the held nft dies another one takes over', async (t) => {
  const table = await tableWithSet(t);
  const nft = new Nft();
  t.after(() => nft.close());
  await nft.run(`add element inet ${table} numbers { 1001 }`);
  for (const pid of await childrenNamed('nft')) process.kill(pid, 'SIGKILL');
  await nft.run(`add element inet ${table} numbers { 1002 }`);
  assert.deepEqual(await numbersIn(table), ['1001', '1002']);
});

test('an idle nft that was killed delays no command', async (t) => {
  const table = await tableWithSet(t);
  const nft = new Nft();
  t.after(() => nft.close());
  await nft.run(`add element inet ${table} numbers { 1001 }`);
  for (const pid of await childrenNamed('nft')) process.kill(pid, 'SIGKILL');
  // Until its end was seen, which is when it would have been waited for in vain.
  await waitUntil(async () => (await childrenNamed('nft')).length === 0);
  const before = performance.now();
  await nft.run(`add element inet ${table} numbers { 1002 }`);
  assert.ok(performance.now() - before < BATCH_DEADLINE_MS, 'a dead nft was waited for');
});

test('rules that nft does not take are an error that says why', async () => {
  await assert.rejects(
    loadRuleset('table inet svc_nonsense { nonsense }'),
    /nft refused the rules: .*syntax error/s,
  );
});

async function childrenNamed(name: string): Promise<readonly number[]> {
  const found: number[] = [];
  for (const entry of await readdir('/proc')) {
    const status = /^\d+$/.test(entry) ? await readFile(`/proc/${entry}/status`, 'utf8').catch(() => '') : '';
    if (status.includes(`Name:\t${name}\n`) && status.includes(`PPid:\t${process.pid}\n`))
      found.push(Number(entry));
  }
  return found;
}

test('the answer to a command ends at the complete error about the marker', () => {
  const complaint = 'Error: syntax error, unexpected string\ndone7\n^^^^^\n';
  for (let length = 0; length < complaint.length; length++)
    assert.equal(textBefore('done7', complaint.slice(0, length)), undefined);
  assert.equal(textBefore('done7', complaint), '');
  const refusal = 'Error: No such file or directory\nadd element inet x y { 1 }\n                 ^\n';
  assert.equal(textBefore('done7', refusal + complaint), refusal);
  assert.equal(textBefore('done', refusal + complaint), undefined);
});

test('an nft that crashed is told apart from one that refuses', () => {
  assert.equal(sayRefusal('syntax error', null), 'nft refused the rules: syntax error');
  assert.match(sayRefusal('', 'SIGSEGV'), /^nft was ended by SIGSEGV .*`nft list ruleset`.*update nftables/);
});
