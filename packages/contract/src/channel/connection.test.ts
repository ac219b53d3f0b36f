import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { encodeMessage } from '../frames/frame.ts';
import { ChannelClient } from './channel-client.ts';
import { ChannelError } from './channel-error.ts';
import { HELLO, RANGE, READY, ScriptedAgent } from '../testing/scripted-agent.ts';

/** The hello that an agent of the original implementation was seen to send. */
const RECORDED_RANGE = Uint8Array.of(0, 0, 0, 1, 1, 0xff, 0xff, 0xff);

function connectTo(bytes: readonly Uint8Array[], timeoutMs = 10_000): Promise<ChannelClient> {
  const agent = new ScriptedAgent();
  for (const part of bytes) agent.sendBytes(part);
  return ChannelClient.connect(agent.transport, { timeoutMs });
}

function isKind(kind: string): (error: unknown) => boolean {
  return (error) => error instanceof ChannelError && error.kind === kind;
}

test('a hello that comes one byte at a time is understood', async () => {
  const client = await connectTo([...HELLO].map((byte) => Uint8Array.of(byte)));
  assert.deepEqual(client.agent, {
    generation: 7,
    version: 'test',
    features: ['svc.watch'],
    bootTimeNs: 1,
    initTimeNs: 2,
    readyTimeNs: 3,
  });
});

test('ids are counted up inside the range that the agent gives', async () => {
  const agent = new ScriptedAgent((message) => agent.send(message.id, 'core.pong'));
  agent.sendBytes(Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 3, ...encodeMessage(0, 'core.ready', READY)));
  const client = await ChannelClient.connect(agent.transport);
  for (let call = 0; call < 4; call++) await client.ping();
  assert.deepEqual(
    agent.received.map((message) => message.id),
    [1, 2, 1, 2],
  );
});

test('when every id of the range is taken the next call is refused', async () => {
  const agent = new ScriptedAgent();
  agent.sendBytes(Uint8Array.of(0, 0, 0, 1, 0, 0, 0, 2, ...encodeMessage(0, 'core.ready', READY)));
  const client = await ChannelClient.connect(agent.transport);
  const first = client.ping();
  await assert.rejects(client.ping(), isKind('refused'));
  agent.send(1, 'core.pong');
  await first;
});

test('a hello that breaks the protocol fails the connection', async () => {
  const ready = encodeMessage(0, 'core.ready', READY);
  const hellos: Record<string, Uint8Array[]> = {
    'empty range': [Uint8Array.of(0, 0, 0, 5, 0, 0, 0, 5), ready],
    'range of id 0 only': [Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 1), ready],
    'no ready': [RANGE, encodeMessage(0, 'core.pong', {})],
    'ready under an id': [RANGE, encodeMessage(4, 'core.ready', READY)],
    'a time missing': [RANGE, encodeMessage(0, 'core.ready', { boot_time_ns: 1, init_time_ns: 1 })],
    'an illegal frame': [RECORDED_RANGE, Uint8Array.of(0xff, 0xff, 0xff, 0xff)],
  };
  for (const [name, bytes] of Object.entries(hellos)) {
    await assert.rejects(connectTo(bytes), isKind('protocol'), name);
  }
});

test('an agent that says nothing is given up on in time, and the transport closed', async () => {
  const agent = new ScriptedAgent();
  await assert.rejects(ChannelClient.connect(agent.transport, { timeoutMs: 20 }), isKind('timeout'));
  assert.equal(agent.isClosed, true);
});

test('connecting can be aborted', async () => {
  const controller = new AbortController();
  const agent = new ScriptedAgent();
  const connecting = ChannelClient.connect(agent.transport, { signal: controller.signal });
  controller.abort(new Error('enough'));
  await assert.rejects(connecting, /enough/);
  assert.equal(agent.isClosed, true);
});

test('a request that an older agent does not know is refused before it is sent', async () => {
  const ready = encodeMessage(0, 'core.ready', READY);
  // The generation is the fourth byte of the body.
  ready[12] = 1;
  const agent = new ScriptedAgent();
  agent.sendBytes(RANGE);
  agent.sendBytes(ready);
  const client = await ChannelClient.connect(agent.transport);
  await assert.rejects(client.files.stat('/'), isKind('unsupported'));
  await assert.rejects(client.connectTcp('localhost', 80), isKind('unsupported'));
  await assert.rejects(client.ping(), isKind('unsupported'));
  assert.equal(agent.received.length, 0);
});

test('the end of the connection rejects everything under way and everything after', async () => {
  for (const cause of [undefined, new Error('reset')]) {
    const { agent, client } = await ScriptedAgent.connect((message) => {
      if (message.type === 'core.exec.request') agent.send(message.id, 'core.exec.started', { pid: 7 });
    });
    const process = await client.exec({ cmd: 'sleep' });
    const calls = [
      client.ping(),
      client.files.stat('/'),
      client.connectTcp('localhost', 1),
      client.exec({ cmd: 'x' }).then((other) => other.exited),
      process.exited,
      process.stdout[Symbol.asyncIterator]().next(),
    ];
    agent.hangUp(cause);
    for (const call of calls) await assert.rejects(call, isKind('closed'));
    assert.equal((await client.closed).kind, 'closed');
    await assert.rejects(client.ping(), isKind('closed'));
    await assert.rejects(client.exec({ cmd: 'x' }), isKind('closed'));
  }
});

test('close rejects what is under way and closes the transport', async () => {
  const { agent, client } = await ScriptedAgent.connect();
  const call = client.ping();
  client.close();
  client.close();
  await assert.rejects(call, isKind('closed'));
  assert.equal(agent.isClosed, true);
});

test('an aborted call rejects at once, and its late answer is ignored', async () => {
  const { agent, client } = await ScriptedAgent.connect();
  const controller = new AbortController();
  const calls = [
    client.ping({ signal: controller.signal }),
    client.touch({ signal: controller.signal }),
    client.files.stat('/', {}, controller.signal),
    client.files.readFile('/x', {}, controller.signal),
    client.connectTcp('localhost', 1, { signal: controller.signal }),
    client.exec({ cmd: 'x' }, { signal: controller.signal }),
    client.run({ cmd: 'x' }, { signal: controller.signal }),
  ];
  controller.abort(new Error('enough'));
  for (const call of calls) await assert.rejects(call, /enough/);
  await assert.rejects(client.ping({ signal: controller.signal }), /enough/);
  for (const message of agent.received) {
    agent.send(message.id, 'core.fs.response', { ok: true, data: null });
  }
  const late = client.ping();
  agent.send(agent.received.at(-1)?.id ?? 0, 'core.pong');
  await late;
});

test('a call whose request cannot be sent can be aborted too', async () => {
  const { agent, client } = await ScriptedAgent.connect((message) => {
    if (message.type === 'core.exec.request') agent.send(message.id, 'core.exec.started', { pid: 1 });
  });
  const controller = new AbortController();
  const process = await client.exec({ cmd: 'cat' }, { signal: controller.signal });
  agent.isStuck = true;
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (;;) yield new Uint8Array(10);
  }
  const calls = [
    client.ping({ signal: controller.signal }),
    client.files.list('/', controller.signal),
    client.files.write(1, 0, endless(), controller.signal),
    client.connectTcp('localhost', 1, { signal: controller.signal }),
    client.exec({ cmd: 'x' }, { signal: controller.signal }),
    client.run({ cmd: 'x' }, { signal: controller.signal, input: endless() }),
  ];
  const writing = process.writeStdin(new Uint8Array(1_000_000));
  setImmediate(() => controller.abort(new Error('enough')));
  for (const call of calls) await assert.rejects(call, /enough/);
  await writing;
});

test('frames for unused ids are dropped unopened', async () => {
  const { agent, client } = await ScriptedAgent.connect((message) => {
    const broken = encodeMessage(message.id + 1, 'core.x', {});
    broken.fill(0xff, 9);
    agent.sendBytes(broken);
    agent.send(0, 'core.exec.exited', { code: 1 });
    agent.send(message.id, 'core.pong');
  });
  await client.ping();
});

test('a broken answer fails its own call and no other', async () => {
  const { agent, client } = await ScriptedAgent.connect((message) => {
    if (message.type === 'core.ping') {
      agent.send(message.id, 'core.pong');
      return;
    }
    const broken = encodeMessage(message.id, 'core.fs.response', { ok: true });
    broken.fill(0xff, 9);
    agent.sendBytes(broken);
  });
  const stat = client.files.stat('/');
  await Promise.all([assert.rejects(stat, isKind('protocol')), client.ping()]);
});

test('a call that is ended without an answer is an error', async () => {
  const { agent, client } = await ScriptedAgent.connect((message) =>
    agent.send(message.id, 'core.touched', {}),
  );
  await assert.rejects(client.ping(), isKind('protocol'));
  await assert.rejects(client.touch(), isKind('protocol'));
  await assert.rejects(client.files.stat('/'), isKind('protocol'));
  await assert.rejects(client.exec({ cmd: 'x' }), isKind('protocol'));
  await assert.rejects(client.connectTcp('x', 1), isKind('protocol'));
});

test('core.error is an answer to anything', async () => {
  const { agent, client } = await ScriptedAgent.connect((message) =>
    agent.send(message.id, 'core.error', { kind: 'invalid_payload', message: 'no' }),
  );
  const refusals = [
    client.ping(),
    client.files.stat('/'),
    client.exec({ cmd: 'x' }),
    client.connectTcp('x', 1),
  ];
  for (const call of refusals) {
    await assert.rejects(
      call,
      (error) => isKind('refused')(error) && /no \(invalid_payload\)/.test(String(error)),
    );
  }
});

test('every call settles when an agent sends arbitrary bytes', async () => {
  const types = [
    'core.fs.response',
    'core.exec.started',
    'core.exec.exited',
    'core.fs.data',
    'core.tcp.connected',
  ];
  const anyFrame = fc
    .tuple(
      fc.integer({ min: 0, max: 8 }),
      fc.constantFrom(...types, 'core.exec.failed', 'core.pong', 'core.error', 'core.exec.stdout'),
      fc.dictionary(
        fc.constantFrom('ok', 'data', 'error', 'pid', 'code', 'kind', 'message'),
        fc.oneof(
          fc.boolean(),
          fc.string(),
          fc.uint8Array(),
          fc.integer(),
          fc.constant({ List: [{ path: 1 }] }),
        ),
      ),
    )
    .map(([id, type, payload]) => encodeMessage(id, type, payload));
  const anyBytes = fc.array(fc.oneof(anyFrame, anyFrame, anyFrame, fc.uint8Array({ maxLength: 30 })));
  await fc.assert(
    fc.asyncProperty(anyBytes, async (parts) => {
      const { agent, client } = await ScriptedAgent.connect();
      const calls = [
        client.files.list('/'),
        client.files.readFile('/x'),
        client.run({ cmd: 'x' }),
        client.connectTcp('x', 1),
        client.ping(),
        client.files.writeFile('/x', Uint8Array.of(1)),
      ];
      for (const part of parts) agent.sendBytes(part);
      agent.hangUp();
      await Promise.allSettled(calls);
    }),
    { numRuns: 200 },
  );
});
