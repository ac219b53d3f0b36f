import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { Channel } from './channel.ts';
import { Engine } from './engine.ts';

/** Starts children that leave in every way a daemon does: its own session, a second fork, no descriptors, no environment. */
const FAMILY = [
  'setsid sleep 71001 </dev/null >/dev/null 2>&1 &',
  '(setsid sh -c "sleep 71002 & sleep 71003" </dev/null >/dev/null 2>&1 &) ;',
  'env -i setsid sh -c "exec 0<&- 1>&- 2>&-; (/bin/sleep 71004 &)" ;',
].join(' ');

async function sleepers(session: Channel, key: string): Promise<readonly string[]> {
  const all = 'for f in /proc/[0-9]*/cmdline; do tr "\\0" " " < $f 2>/dev/null; echo; done';
  const script = `${all} | grep -E "^(/bin/)?sleep 7100[1-9] $" | grep -o "sleep 7100." | sort`;
  await session.call('svc.detached.start', { key, cmd: '/bin/sh', args: ['-c', script] });
  const id = session.newId();
  session.send(id, 'svc.detached.read', { key, stdout: 0, follow: true });
  await session.take(({ id: of, flags }) => of === id && (flags & 1) === 1, 'the list');
  const pieces = session.frames.filter((frame) => frame.id === id);
  const text = Buffer.concat(
    pieces.map(({ payload }) => Buffer.from(payload['data'] as Uint8Array)),
  ).toString();
  await session.call('svc.detached.forget', { key });
  return text.split('\n').filter((line) => line !== '');
}

const ALL = [1, 2, 3, 4].map((number) => `sleep 7100${number}`);

test('a timeout ends all that a command started, in sessions of their own too, and nothing else', async (t) => {
  const engine = await Engine.start(t);
  const session = await engine.session();
  const start = async (key: string, script: string) =>
    await session.call('svc.detached.start', { key, cmd: '/bin/sh', args: ['-c', script] });
  await start('other', 'setsid sleep 71009 & sleep 71000');
  await start('parent', `${FAMILY} sleep 71000`);
  await waitUntil(async () => (await sleepers(session, 'look')).length === 5, 'all of them run');
  await session.call('svc.detached.timeout', { key: 'parent', timeout_ms: 1 });
  await waitUntil(
    async () => (await sleepers(session, 'look')).length === 1,
    'those of the command are gone',
  );
  assert.deepEqual(await sleepers(session, 'look'), ['sleep 71009']);
});

test('a client that kills a command can mean its group or its whole tree', async (t) => {
  const engine = await Engine.start(t);
  const session = await engine.session();
  const exec = (script: string) => {
    const id = session.newId();
    session.send(id, 'core.exec.request', { cmd: '/bin/sh', args: ['-c', script] });
    return id;
  };
  const ended = async (id: number) =>
    await session.take(({ id: of, type }) => of === id && type === 'core.exec.exited', 'its end');
  const group = exec(`${FAMILY} sleep 71000`);
  await waitUntil(async () => (await sleepers(session, 'look')).length === 4, 'all of them run');
  session.send(group, 'core.exec.signal', { signal: 9 });
  await ended(group);
  assert.deepEqual(await sleepers(session, 'look'), ALL, 'they left the group');
  const tree = exec('setsid sleep 71005 & sleep 71000');
  await waitUntil(async () => (await sleepers(session, 'look')).length === 5, 'one more runs');
  session.send(tree, 'core.exec.signal', { signal: 9, tree: true });
  await ended(tree);
  await waitUntil(async () => (await sleepers(session, 'look')).length === 4, 'it is gone');
  assert.deepEqual(await sleepers(session, 'look'), ALL);
});

test('a requested rss limit is set', async (t) => {
  const engine = await Engine.start(t);
  const session = await engine.session();
  const rlimits = [{ resource: 'rss', soft: 4096, hard: 8192 }];
  const script = 'grep "resident set" /proc/self/limits';
  await session.call('svc.detached.start', { key: 'k', cmd: '/bin/sh', args: ['-c', script], rlimits });
  const id = session.newId();
  session.send(id, 'svc.detached.read', { key: 'k', stdout: 0, follow: true });
  const output = await session.take(({ type }) => type === 'svc.detached.output', 'the limit');
  assert.match(Buffer.from(output.payload['data'] as Uint8Array).toString(), /4096\s+8192/);
});
