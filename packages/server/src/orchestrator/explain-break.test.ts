import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ChannelClient, ChannelError, PlatformError } from '@svc/contract';
import { socketTransport } from '@svc/contract/node-socket-transport';
import { createFakeAgent } from '../testing/fake-agent.ts';
import { explainBreak } from './explain-break.ts';

const outOfMemory = new PlatformError('sandbox_not_running', 'it is failed; out of memory', {
  details: { state: 'failed', reason: 'oom' },
});
/** Shorter than the pause between two questions, and long enough that the first is asked. */
const SHORT_MS = 20;
/** What is seen of a sandbox from its death until everything that it had is released, in this order. */
const ending = [
  new ChannelError('closed', 'The sandbox closed the channel'),
  new PlatformError('unavailable', 'the sandbox is not connected to its engine yet'),
  new PlatformError('sandbox_not_running', 'it is stopping; start it first', {
    details: { state: 'stopping' },
  }),
];

test('the reason of a broken channel is found, however long the end takes', async () => {
  // One that does not answer is given up before it is asked a second time, one that ends is not.
  const timeouts = { silentMs: SHORT_MS, endingMs: 60_000 };
  const answers = [...ending.slice(1), ...ending, outOfMemory];
  const next = () => Promise.reject(answers.shift() ?? new Error('asked too often'));
  const why = await explainBreak(next, timeouts);
  assert.equal(why, outOfMemory);
  assert.deepEqual(answers, []);
});

test('when the time is over before the reason is known, the latest error is returned', async () => {
  const stopping = ending[2];
  assert.equal(
    await explainBreak(() => Promise.reject(stopping), { silentMs: SHORT_MS, endingMs: SHORT_MS }),
    stopping,
  );
});

test('a sandbox that answers has not ended, and an error that waiting cannot change is returned at once', async () => {
  const open = (signal: AbortSignal) =>
    ChannelClient.connect(socketTransport(createFakeAgent({}, '/')), { signal });
  const answers = [ending[0]];
  const opens = (signal: AbortSignal) =>
    answers.length > 0 ? Promise.reject(answers.shift()) : open(signal);
  assert.equal(await explainBreak(opens), undefined);
  const away = new PlatformError('orchestrator_unreachable', 'the engine is away');
  assert.equal(await explainBreak(() => Promise.reject(away)), away);
});
