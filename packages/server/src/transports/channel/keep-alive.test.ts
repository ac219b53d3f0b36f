import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { test, type TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { WebSocket } from 'ws';
import { KeepAlive } from './keep-alive.ts';

const KEEP_ALIVE_MS = 40;

/** A client that answers a ping, if it does, two turns of the event loop later: its answer has to be read first. */
class FakeClient extends EventEmitter {
  readonly isPaused = false;
  readonly bufferedAmount = 0;
  readonly #isSilent: boolean;
  isTerminated = false;

  constructor({ isSilent }: { readonly isSilent: boolean }) {
    super();
    this.#isSilent = isSilent;
  }

  ping(): void {
    this.emit('pinged');
    if (!this.#isSilent) setImmediate(() => setImmediate(() => this.emit('pong')));
  }

  terminate(): void {
    this.isTerminated = true;
    this.emit('terminated');
  }
}

function watched(t: TestContext, options: { readonly isSilent: boolean }): FakeClient {
  const client = new FakeClient(options);
  // KeepAlive uses of a WebSocket what is here.
  const socket = client as unknown as WebSocket;
  const keepAlive = new KeepAlive(socket, { keepAliveMs: KEEP_ALIVE_MS, recheck: () => Promise.resolve() });
  t.after(() => keepAlive.stop());
  return client;
}

function standStill(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3 * KEEP_ALIVE_MS);
}

test('a client that answered while this process was stopped stays connected', async (t) => {
  const client = watched(t, { isSilent: false });
  for (let round = 0; round < 3; round++) {
    await once(client, 'pinged');
    standStill();
    await nextTurn();
  }
  assert.equal(client.isTerminated, false);
});

test('a client that does not answer is disconnected, also after this process was stopped', async (t) => {
  const client = watched(t, { isSilent: true });
  const terminated = once(client, 'terminated');
  await once(client, 'pinged');
  standStill();
  await terminated;
});
