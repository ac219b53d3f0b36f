import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import type { Channel, Payload } from './channel.ts';
import { Engine } from './engine.ts';

async function start(session: Channel, key: string, options: Payload = {}): Promise<number> {
  const request = { key, cmd: '/bin/sh', args: ['-c', 'echo ready; cat'], stdin: true, ...options };
  const answer = await session.call('svc.detached.start', request);
  assert.equal(answer.type, 'svc.detached.started', String(answer.payload['message']));
  return answer.payload['pid'] as number;
}

async function keys(session: Channel): Promise<unknown[]> {
  const { payload } = await session.call('svc.detached.list');
  return (payload['processes'] as Payload[]).map(({ key }) => key);
}

const write = async (session: Channel, key: string) =>
  await session.call('svc.detached.stdin', { key, data: Buffer.from('x\n') });

test('a spare process is no activity until its first input', async (t) => {
  const engine = await Engine.start(t);
  const control = await engine.control();
  const session = await engine.session();
  const statusOf = async (processes: number, what: string) =>
    await control.take(
      ({ type, payload }) => type === 'svc.status' && payload['active_processes'] === processes,
      what,
    );
  const spares = async () => (await control.call('svc.count')).payload['spares'];
  await start(session, 'spare', { spare: true });
  await start(session, 'other');
  await statusOf(1, 'the other one alone is counted');
  assert.equal(await spares(), 1);
  await write(session, 'spare');
  await statusOf(2, 'it is counted from its first input on');
  assert.equal(await spares(), 0);
  await session.call('svc.detached.forget', { key: 'spare' });
  await statusOf(1, 'it is counted no more when it has ended');
  await start(session, 'unused', { spare: true });
  await session.call('svc.detached.forget', { key: 'unused' });
  await session.call('svc.detached.forget', { key: 'other' });
  await statusOf(0, 'an unused one was never counted');
});

test('a change of the defaults of processes ends spare processes, and those in use stay', async (t) => {
  const engine = await Engine.start(t);
  const session = await engine.session();
  const pid = await start(session, 'spare', { spare: true });
  await start(session, 'used', { spare: true });
  await start(session, 'asked for');
  await write(session, 'used');
  await engine.configure({ env: ['A=b'] });
  assert.deepEqual(await keys(session), ['used', 'asked for'], 'it is not found any more at once');
  await waitUntil(
    async () => (await session.call('svc.detached.forget', { key: 'spare' })).type === 'core.error',
    'gone',
  );
  const again = await waitFor(session);
  assert.notEqual(again, pid);
});

/** The name can be had again when the former process has ended. */
async function waitFor(session: Channel): Promise<number> {
  let pid = 0;
  await waitUntil(async () => {
    const answer = await session.call('svc.detached.start', {
      key: 'spare',
      cmd: '/bin/sh',
      args: ['-c', 'test "$A" = b && cat'],
      stdin: true,
      repeat: true,
    });
    pid = (answer.payload['pid'] as number | undefined) ?? 0;
    return answer.type === 'svc.detached.started';
  }, 'a new one under its name');
  return pid;
}
