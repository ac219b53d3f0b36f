import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message, Payload } from '../frames/frame.ts';
import { ChannelError, FileFailed } from './channel-error.ts';
import { ScriptedAgent } from '../testing/scripted-agent.ts';

const ENTRY = {
  path: '/a',
  kind: 'file',
  size: 3n,
  mode: 33188,
  modified: 5,
  uid: 0,
  gid: 1,
  atime: null,
  mtime: 6,
};

/** The one operation in a request and its fields. */
function operationOf(message: Message | undefined): [string, Payload] {
  const op = message?.payload['op'];
  const [entry] = Object.entries(typeof op === 'object' && op !== null ? op : {});
  return entry ?? ['', {}];
}

/** Answers each operation with what the table says. */
function answering(table: Record<string, unknown>): ReturnType<typeof ScriptedAgent.connect> {
  return ScriptedAgent.connect((message, agent) => {
    if (message.type !== 'core.fs.request') return;
    const data = table[operationOf(message)[0]];
    if (data === undefined)
      agent.send(message.id, 'core.fs.response', { ok: false, error: 'unexpected', data: null });
    else agent.send(message.id, 'core.fs.response', { ok: true, error: null, data });
  });
}

/** Holds one file under handle 1, in memory, sent in pieces of `pieceBytes`. */
function holding(content: Uint8Array, pieceBytes: number): ReturnType<typeof ScriptedAgent.connect> {
  return ScriptedAgent.connect((message, agent) => {
    if (message.type !== 'core.fs.request') return;
    const [name, fields] = operationOf(message);
    if (name === 'Read') {
      const offset = Number(fields['offset']);
      const end = Math.min(offset + Number(fields['len']), content.length);
      for (let at = offset; at < end; at += pieceBytes) {
        agent.send(message.id, 'core.fs.data', {
          data: content.subarray(at, Math.min(at + pieceBytes, end)),
        });
      }
    }
    agent.send(message.id, 'core.fs.response', {
      ok: true,
      error: null,
      data: name === 'OpenFile' ? { Handle: 1 } : null,
    });
  });
}

test('every operation sends its variant and reads its answer', async () => {
  const { agent, client } = await answering({
    RealPath: { Path: '/real' },
    Stat: { Stat: ENTRY },
    SetStat: null,
    List: { List: [ENTRY, { ...ENTRY, kind: 'dir' }] },
    ReadLink: { Path: 'target' },
    Symlink: null,
    Mkdir: null,
    Remove: null,
    RemoveDir: null,
    Copy: null,
    Rename: null,
    OpenFile: { Handle: 4 },
    OpenDir: { Handle: 5 },
    CloseHandle: null,
    ReadDir: { List: [] },
    FStat: { Stat: ENTRY },
    FSetStat: null,
  });
  const { files } = client;
  assert.equal(await files.realPath('/a'), '/real');
  const entry = await files.stat('/a');
  assert.deepEqual(entry, {
    path: '/a',
    kind: 'file',
    size: 3,
    mode: 33188,
    uid: 0,
    gid: 1,
    modifiedSeconds: 6,
    accessedSeconds: null,
  });
  await files.setStat('/a', { mode: 0o600 }, { followSymlink: false });
  assert.deepEqual(
    (await files.list('/')).map((each) => each.kind),
    ['file', 'dir'],
  );
  assert.equal(await files.readLink('/a'), 'target');
  await files.symlink('t', '/l');
  await files.mkdir('/d', { mode: 0o700 });
  await files.remove('/a');
  await files.removeDir('/d', { recursive: true });
  await files.copy('/a', '/b');
  await files.rename('/a', '/b');
  assert.equal(await files.open('/a', { read: true }), 4);
  assert.equal(await files.openDir('/'), 5);
  assert.deepEqual(await files.readDir(5, 10), []);
  assert.equal((await files.fstat(4)).size, 3);
  await files.fsetstat(4, { size: 0 });
  await files.closeHandle(4);
  const sent = agent.received.map((message) => operationOf(message));
  assert.deepEqual(sent[2], [
    'SetStat',
    {
      path: '/a',
      follow_symlink: false,
      attrs: { mode: 0o600, uid: null, gid: null, size: null, atime: null, mtime: null },
    },
  ]);
  assert.deepEqual(sent[8], ['RemoveDir', { path: '/d', recursive: true }]);
  assert.deepEqual(sent[5], ['Symlink', { target: 't', link_path: '/l' }]);
});

test('an error of the sandbox keeps its text and says which errno it is', async () => {
  const answers = [
    { error: 'stat: No such file or directory' },
    { error: 'stat: strange', errno_name: 'ENOENT' },
    { error: 'write: No space left on device (os error 28)' },
    { error: 'unexpected' },
  ];
  const { client } = await ScriptedAgent.connect((message, agent) =>
    agent.send(message.id, 'core.fs.response', { ok: false, ...answers.shift() }),
  );
  const errors: (string | null)[] = [];
  for (let call = 0; call < 4; call++) {
    await assert.rejects(client.files.stat('/x'), (error) => {
      assert.ok(error instanceof FileFailed);
      errors.push(error.errnoName);
      return true;
    });
  }
  assert.deepEqual(errors, ['ENOENT', 'ENOENT', 'ENOSPC', null]);
});

test('exists is false for a missing file and an error for anything else', async () => {
  const answers = ['stat: No such file or directory', 'stat: Permission denied'];
  const { client } = await ScriptedAgent.connect((message, agent) =>
    agent.send(message.id, 'core.fs.response', { ok: false, error: answers.shift() }),
  );
  assert.equal(await client.files.exists('/x'), false);
  await assert.rejects(client.files.exists('/x'), /Permission denied/);
});

test('answers that lack what they promise are protocol errors', async () => {
  const forged: unknown[] = [
    null,
    { Stat: 5 },
    { Stat: { ...ENTRY, size: -1 } },
    { Stat: { ...ENTRY, kind: 'x' } },
    7,
  ];
  for (const data of forged) {
    const { client } = await answering({ Stat: data, List: { List: 'many' }, OpenFile: { Handle: 'one' } });
    const isProtocolError = (error: unknown): boolean =>
      error instanceof ChannelError && error.kind === 'protocol';
    await assert.rejects(client.files.stat('/'), isProtocolError);
    await assert.rejects(client.files.list('/'), isProtocolError);
    await assert.rejects(client.files.open('/', { read: true }), isProtocolError);
  }
});

test('a file of any size is read whole, from chunks of any size', async () => {
  const window = 2 * 1024 * 1024;
  for (const size of [0, 1, window - 1, window, window + 1, 3 * window + 5]) {
    const content = new Uint8Array(size).map((_, index) => index % 253);
    const { client } = await holding(content, 700_001);
    assert.deepEqual(await client.files.readFile('/x'), content);
  }
});

test('a file beyond the limit is refused, and reading stops there', async () => {
  const { agent, client } = await holding(new Uint8Array(10 * 1024 * 1024), 1024 * 1024);
  await assert.rejects(client.files.readFile('/x', { maxBytes: 1000 }), /more than 1000 bytes/);
  const reads = agent.received.filter((message) => operationOf(message)[0] === 'Read');
  assert.ok(reads.length <= 2);
  assert.equal(operationOf(agent.received.at(-1))[0], 'CloseHandle');
});

test('an agent that sends more than was asked for is not believed', async () => {
  for (const piece of [new Uint8Array(100), new Uint8Array(1)]) {
    const { client } = await ScriptedAgent.connect((message, agent) => {
      for (let sent = 0; sent < 200; sent++) agent.send(message.id, 'core.fs.data', { data: piece });
      agent.send(message.id, 'core.fs.response', { ok: true, data: null });
    });
    await assert.rejects(client.files.read(1, 0, 1000), /more content than was asked for/);
  }
});

test('a handle that arrives after its caller gave up is let go of', async () => {
  const { agent, client } = await ScriptedAgent.connect();
  const controller = new AbortController();
  const opening = client.files.open('/x', { read: true }, controller.signal);
  controller.abort(new Error('enough'));
  await assert.rejects(opening, /enough/);
  agent.send(1, 'core.fs.response', { ok: true, data: { Handle: 77 } });
  const stat = client.files.stat('/');
  agent.send(2, 'core.fs.response', { ok: true, data: { Stat: ENTRY } });
  await stat;
  assert.deepEqual(operationOf(agent.received.at(-1)), ['CloseHandle', { handle: 77 }]);
});

test('content is written in frames of at most 2 MiB and ended by an empty one', async () => {
  const { agent, client } = await ScriptedAgent.connect((message, agent) => {
    const data = message.payload['data'];
    const isEnd = message.type === 'core.fs.data' && data instanceof Uint8Array && data.length === 0;
    const [name] = operationOf(message);
    if (isEnd || name === 'CloseHandle') agent.send(message.id, 'core.fs.response', { ok: true, data: null });
    if (name === 'OpenFile') agent.send(message.id, 'core.fs.response', { ok: true, data: { Handle: 9 } });
  });
  await client.files.writeFile('/x', new Uint8Array(5 * 1024 * 1024), { mode: 0o600 });
  const sizes = agent.received
    .map((message) => message.payload['data'])
    .filter((data) => data instanceof Uint8Array);
  assert.deepEqual(
    sizes.map((data) => data.length),
    [2097152, 2097152, 1048576, 0],
  );
  assert.equal(operationOf(agent.received.at(-1))[0], 'CloseHandle');
});

test('a file is replaced by a temporary one beside it, which keeps its mode and owner and is let go of when it breaks off', async () => {
  async function* failing(): AsyncGenerator<Uint8Array> {
    yield new Uint8Array(10);
    throw new Error('the source is gone');
  }
  const { agent, client } = await ScriptedAgent.connect((message, agent) => {
    const data = message.payload['data'];
    const isEnd = message.type === 'core.fs.data' && data instanceof Uint8Array && data.length === 0;
    const [name] = operationOf(message);
    const answers: Record<string, unknown> = { Stat: { Stat: ENTRY }, OpenFile: { Handle: 9 } };
    if (isEnd || (name !== '' && name !== 'Write'))
      agent.send(message.id, 'core.fs.response', { ok: true, data: answers[name] ?? null });
  });
  const sent = () => agent.received.map(operationOf).filter(([name]) => name !== '');
  await client.files.replaceFile('/a/b', new Uint8Array(5));
  const [, [, opened] = ['', {}], , [, { attrs }] = ['', {}], renamed, closed] = sent();
  const partial = String(opened['path']);
  assert.match(partial, /^\/a\/\.svc-partial-[0-9a-f]{16}$/);
  const { create_new, temporary, mode, truncate } = opened['options'] as Payload;
  assert.deepEqual([create_new, temporary, mode, truncate], [true, true, 0o644, false]);
  assert.partialDeepStrictEqual(attrs, { uid: 0, gid: 1, mode: 0o644 });
  assert.deepEqual(renamed, ['Rename', { src: partial, dst: '/a/b' }]);
  assert.deepEqual(closed, ['CloseHandle', { handle: 9 }]);

  agent.received.length = 0;
  await assert.rejects(client.files.replaceFile('/a/b', failing(), { mode: 0o600 }), /the source is gone/);
  await client.files.stat('/a');
  assert.deepEqual(
    sent().map(([name]) => name),
    ['Stat', 'OpenFile', 'Write', 'CloseHandle', 'Stat'],
  );
});

test('an error while content is being sent stops the sending', async () => {
  let sent = 0;
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (;;) {
      sent += 1;
      await new Promise((resolve) => setImmediate(resolve));
      yield new Uint8Array(10);
    }
  }
  const { client } = await ScriptedAgent.connect((message, agent) => {
    if (message.type === 'core.fs.data' && sent === 3) {
      agent.send(message.id, 'core.fs.response', { ok: false, error: 'write: No space left on device' });
    }
  });
  await assert.rejects(client.files.write(1, 0, endless()), /No space left/);
  assert.ok(sent < 10);
});

test('a source that fails ends the write and is reported', async () => {
  async function* failing(): AsyncGenerator<Uint8Array> {
    yield new Uint8Array(10);
    throw new Error('the source is gone');
  }
  const { agent, client } = await ScriptedAgent.connect();
  await assert.rejects(client.files.write(1, 0, failing()), /the source is gone/);
  const last = agent.received.at(-1);
  assert.deepEqual([last?.type, last?.payload], ['core.fs.data', { data: new Uint8Array(0) }]);
});

test('a silent source does not keep an aborted write waiting', async () => {
  async function* silent(): AsyncGenerator<Uint8Array> {
    await new Promise(() => undefined);
    yield new Uint8Array(0);
  }
  const controller = new AbortController();
  const { client } = await ScriptedAgent.connect();
  const writing = client.files.write(1, 0, silent(), controller.signal);
  setImmediate(() => controller.abort(new Error('enough')));
  await assert.rejects(writing, /enough/);
});
