import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeMessage } from '../frames/frame.ts';
import { ChannelClient } from './channel-client.ts';
import { ChannelError, FileFailed } from './channel-error.ts';
import type { ChannelWatch, WatchEvent } from './channel-watch.ts';
import { RANGE, READY, ScriptedAgent } from '../testing/scripted-agent.ts';

const STARTED = { path: '/real', kind: 'dir' };

async function watching(): Promise<{ agent: ScriptedAgent; client: ChannelClient; watch: ChannelWatch }> {
  const { agent, client } = await ScriptedAgent.connect(({ id, type }, to) => {
    if (type === 'svc.watch.start') to.send(id, 'svc.watch.started', STARTED);
  });
  return { agent, client, watch: await client.files.watch('/link', { recursive: true }) };
}

test('a watch reports its real path and its events in order, up to the end', async () => {
  const { agent, watch } = await watching();
  assert.deepEqual(agent.received[0]?.payload, { path: '/link', recursive: true });
  assert.equal(watch.path, '/real');
  const created = { type: 'created', path: 'a', kind: 'dir', from: null };
  agent.send(1, 'svc.watch.events', {
    events: [created, { ...created, type: 'renamed', path: 'b', from: 'a' }],
  });
  agent.send(1, 'svc.watch.events', { events: [{ type: 'overflow', path: '', kind: null, from: null }] });
  agent.send(1, 'svc.watch.end', { reason: 'removed' });
  assert.deepEqual(await Array.fromAsync(watch.events()), [
    { type: 'created', path: 'a', kind: 'dir' },
    { type: 'renamed', path: 'b', kind: 'dir', from: 'a' },
    { type: 'overflow' },
  ] satisfies WatchEvent[]);
});

test('stopping ends the iteration and sends a stop to the agent', async () => {
  const { agent, watch } = await watching();
  const reading = Array.fromAsync(watch.events());
  watch.stop();
  assert.deepEqual(await reading, []);
  assert.equal(agent.received.at(-1)?.type, 'svc.watch.stop');
});

test('a failure keeps its errno, at the start and later', async () => {
  const failure = { message: 'watch: No such file or directory', errno_name: 'ENOENT' };
  const { client } = await ScriptedAgent.connect(({ id }, to) => to.send(id, 'svc.watch.failed', failure));
  const isMissing = (error: unknown) => error instanceof FileFailed && error.errnoName === 'ENOENT';
  await assert.rejects(client.files.watch('/x'), isMissing);
  const { agent, watch } = await watching();
  agent.send(1, 'svc.watch.failed', failure);
  await assert.rejects(Array.fromAsync(watch.events()), isMissing);
});

test('an agent that does not say that it can watch is not asked', async () => {
  const agent = new ScriptedAgent();
  const { features: _, ...old } = READY;
  agent.sendBytes(Uint8Array.of(...RANGE, ...encodeMessage(0, 'core.ready', old)));
  const client = await ChannelClient.connect(agent.transport);
  const isUnsupported = (error: unknown) => error instanceof ChannelError && error.kind === 'unsupported';
  await assert.rejects(client.files.watch('/x'), isUnsupported);
  assert.deepEqual(agent.received, []);
});

test('events that make no sense end the watch and nothing else', async () => {
  const { agent, client, watch } = await watching();
  agent.send(1, 'svc.watch.events', { events: [{ type: 'exploded', path: 'a', kind: 'file' }] });
  await assert.rejects(
    Array.fromAsync(watch.events()),
    (error: unknown) => error instanceof ChannelError && error.kind === 'protocol',
  );
  const ping = client.ping();
  agent.send(2, 'core.pong');
  await ping;
});

test('an abort of an unanswered start leaves nothing behind', async () => {
  const { agent, client } = await ScriptedAgent.connect();
  const controller = new AbortController();
  const starting = client.files.watch('/x', {}, controller.signal);
  controller.abort(new Error('enough'));
  await assert.rejects(starting, /enough/);
  assert.equal(agent.received.at(-1)?.type, 'svc.watch.stop');
});
