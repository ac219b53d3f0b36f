import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { ChannelClient, ChannelError, ExecFailed, FileFailed } from '@svc/contract/channel';
import { BUILT_SVC_INIT, startLocalInit } from '../testing/local-init.ts';
import type { LocalInit } from '../testing/local-init.ts';
import { openConfinedFolder } from './confined-folder.ts';
import { socketTransport } from '@svc/contract/node-socket-transport';

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();
const MIB = 1024 * 1024;

let init: LocalInit;
let folder: string;

before(async () => {
  init = await startLocalInit();
  folder = await mkdtemp(join(tmpdir(), 'svc-channel-'));
});

after(async () => {
  await init[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

async function connect(): Promise<ChannelClient> {
  return await ChannelClient.connect(socketTransport(await init.dial()));
}

async function* pieces(total: number, size: number): AsyncGenerator<Uint8Array> {
  for (let sent = 0; sent < total; sent += size) {
    yield new Uint8Array(Math.min(size, total - sent)).fill(sent / size);
  }
}

test('a process runs with its arguments, environment, folder and input', async () => {
  const client = await connect();
  const script = 'cat; echo "$1 $COLOUR $PWD"; echo oops >&2; exit 3';
  const result = await client.run(
    { cmd: 'sh', args: ['-c', script, 'sh', 'one'], env: { COLOUR: 'red' }, cwd: '/usr' },
    { input: Buffer.from('input\n') },
  );
  assert.equal(text(result.stdout), 'input\none red /usr\n');
  assert.equal(text(result.stderr), 'oops\n');
  assert.deepEqual([result.code, result.reason, result.truncated], [3, 'exit', []]);
  client.close();
});

test('processes that cannot start fail by kind', async () => {
  const client = await connect();
  const kindOf = (cmd: string, cwd?: string) =>
    client.exec(cwd === undefined ? { cmd } : { cmd, cwd }).then(
      () => 'started',
      (error: unknown) => (error instanceof ExecFailed ? error.kind : String(error)),
    );
  assert.equal(await kindOf('no-such-program'), 'not_found');
  assert.equal(await kindOf('/etc/passwd'), 'permission_denied');
  assert.equal(await kindOf('true', '/etc/passwd'), 'bad_cwd');
  client.close();
});

/** Enough turns of the event loop for the sandbox to fill every buffer on the way. */
async function fillBuffers(): Promise<void> {
  for (let turn = 0; turn < 1000; turn++) await setImmediate();
}

test('64 MiB of output arrive whole, also when the reader is slow at first', async () => {
  const client = await connect();
  const process = await client.exec({ cmd: 'head', args: ['-c', String(64 * MIB), '/dev/zero'] });
  process.stderr.discard();
  let total = 0;
  for await (const chunk of process.stdout) {
    if (total === 0) await fillBuffers();
    total += chunk.length;
  }
  assert.equal(total, 64 * MIB);
  assert.equal((await process.exited).code, 0);
  client.close();
});

test('16 MiB of input come out again, written and read at the same time', async () => {
  const client = await connect();
  const result = await client.run(
    { cmd: 'cat' },
    { input: pieces(16 * MIB, 300_000), maxOutputBytes: 32 * MIB },
  );
  assert.deepEqual(
    Buffer.from(result.stdout),
    Buffer.concat(await Array.fromAsync(pieces(16 * MIB, 300_000))),
  );
  client.close();
});

test('signals, time limits and aborts end the whole process group', async () => {
  const client = await connect();
  const process = await client.exec({ cmd: 'sleep', args: ['1000'] });
  await process.signal(15);
  assert.deepEqual(await process.exited, { code: -1, signal: 15, reason: 'signal' });
  // On a busy machine the process may not print its first line in so little time, or not even start.
  for (const timeoutMs of [100, 1000, 10_000]) {
    const late = await client
      .run({ cmd: 'sh', args: ['-c', 'echo begun; sleep 1000 & wait'] }, { timeoutMs })
      .catch((error: unknown) => {
        if (timeoutMs === 10_000 || !/did not start in time/.test(String(error))) throw error;
      });
    if (late === undefined) continue;
    assert.deepEqual([late.code, late.reason], [-1, 'timeout']);
    if (timeoutMs === 10_000) assert.equal(text(late.stdout), 'begun\n');
    if (text(late.stdout) === 'begun\n') break;
  }
  const controller = new AbortController();
  const aborted = await client.exec({ cmd: 'sleep', args: ['1000'] }, { signal: controller.signal });
  controller.abort(new Error('enough'));
  await assert.rejects(aborted.exited, /enough/);
  const gone = await client.run(
    { cmd: 'sh', args: ['-c', `while kill -0 ${aborted.pid}; do :; done`] },
    { timeoutMs: 60_000 },
  );
  assert.equal(gone.reason, 'exit');
  client.close();
});

test('a terminal has a size that can change', async () => {
  const client = await connect();
  const process = await client.exec({ cmd: 'sh', tty: true, rows: 11, cols: 22 });
  await process.writeStdin(Buffer.from('stty size\n'));
  let seen = '';
  let isResized = false;
  for await (const chunk of process.stdout) {
    seen += text(chunk);
    if (seen.includes('11 22') && !isResized) {
      isResized = true;
      await process.resize(33, 44);
      await process.writeStdin(Buffer.from('stty size; exit\n'));
    }
  }
  assert.match(seen, /33 44/);
  assert.equal((await process.exited).code, 0);
  client.close();
});

test('every file operation does what it says', async () => {
  const client = await connect();
  const { files } = client;
  const at = (name: string) => join(folder, name);
  await files.mkdir(at('a/b'));
  await files.writeFile(at('a/b/file'), pieces(5 * MIB + 7, 1_000_000), { mode: 0o640 });
  const content = Buffer.concat(await Array.fromAsync(pieces(5 * MIB + 7, 1_000_000)));
  assert.deepEqual(await readFile(at('a/b/file')), content);
  assert.deepEqual(Buffer.from(await files.readFile(at('a/b/file'))), content);
  assert.equal((await files.stat(at('a/b/file'))).mode, 0o100640);
  await files.setStat(at('a/b/file'), { mode: 0o600, mtime: 86_400, atime: 3600 });
  const entry = await files.stat(at('a/b/file'));
  assert.deepEqual([entry.mode, entry.modifiedSeconds, entry.accessedSeconds], [0o100600, 86_400, 3600]);
  await files.symlink('b/file', at('a/link'));
  assert.equal(await files.readLink(at('a/link')), 'b/file');
  assert.equal((await files.stat(at('a/link'), { followSymlink: false })).kind, 'symlink');
  assert.equal(await files.realPath(at('a/link')), at('a/b/file'));
  await files.copy(at('a/link'), at('a/copy'));
  await files.rename(at('a/copy'), at('a/moved'));
  assert.deepEqual((await files.list(at('a'))).map((each) => each.path).sort(), [
    at('a/b'),
    at('a/link'),
    at('a/moved'),
  ]);
  const handle = await files.open(at('a/moved'), { read: true, write: true });
  await files.fsetstat(handle, { size: 3 });
  assert.equal((await files.fstat(handle)).size, 3);
  await files.closeHandle(handle);
  await assert.rejects(files.fstat(handle), FileFailed);
  await files.remove(at('a/moved'));
  assert.equal(await files.exists(at('a/moved')), false);
  assert.equal(await files.exists(at('a/b/file/x')), false);
  await assert.rejects(
    files.removeDir(at('a')),
    (error: unknown) => error instanceof FileFailed && error.errnoName === 'ENOTEMPTY',
  );
  await files.removeDir(at('a'), { recursive: true });
  assert.equal(await files.exists(at('a')), false);
  client.close();
});

test('a folder with more entries than one answer holds is read to its end', async () => {
  const client = await connect();
  await client.run({
    cmd: 'sh',
    args: ['-c', 'mkdir many && cd many && seq 3000 | xargs touch'],
    cwd: folder,
  });
  const names = new Set<string>();
  for await (const entry of client.files.readDirectory(join(folder, 'many'))) names.add(entry.path);
  assert.equal(names.size, 3000);
  client.close();
});

test('reading a file can be left in the middle without harm to other calls', async () => {
  await writeFile(join(folder, 'long'), new Uint8Array(20 * MIB));
  const client = await connect();
  for await (const chunk of client.files.readStream(join(folder, 'long'))) {
    assert.ok(chunk.length > 0);
    break;
  }
  await client.ping();
  assert.ok((await client.touch()) >= 0);
  client.close();
});

test('a TCP connection from inside carries bytes and half-closes', async () => {
  const server = createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const client = await connect();
  const stream = await client.connectTcp('127.0.0.1', (server.address() as AddressInfo).port);
  const echoed = Array.fromAsync(stream.readable);
  for await (const piece of pieces(3 * MIB, 100_000)) await stream.write(piece);
  await stream.end();
  assert.deepEqual(
    Buffer.concat(await echoed),
    Buffer.concat(await Array.fromAsync(pieces(3 * MIB, 100_000))),
  );
  await stream.closed;
  server.close();
  await assert.rejects(client.connectTcp('127.0.0.1', 1), (error: unknown) => error instanceof ChannelError);
  client.close();
});

test('twenty processes and transfers at once on one connection do not disturb each other', async () => {
  const client = await connect();
  const results = await Promise.all(
    Array.from({ length: 20 }, async (_, index) => {
      await client.files.writeFile(join(folder, `at-once-${index}`), Buffer.from(`${index}`));
      return text((await client.run({ cmd: 'cat', args: [join(folder, `at-once-${index}`)] })).stdout);
    }),
  );
  assert.deepEqual(
    results,
    Array.from({ length: 20 }, (_, index) => `${index}`),
  );
  client.close();
});

test('a confined folder is the root of its process, and nothing else is there', async () => {
  await writeFile(join(folder, 'mine'), 'content');
  const confined = await openConfinedFolder(BUILT_SVC_INIT, folder, AbortSignal.timeout(60_000));
  assert.equal(text(await confined.files.readFile('/mine')), 'content');
  await confined.files.symlink('/etc/passwd', '/escape');
  assert.equal(await confined.files.exists('/escape'), false);
  assert.equal(await confined.files.exists('/../../../etc/passwd'), false);
  confined.close();
  await confined.gone;
});

test('a confined folder that cannot be opened says why', async () => {
  await assert.rejects(
    openConfinedFolder(BUILT_SVC_INIT, join(folder, 'missing')),
    /No such file or directory/,
  );
  await assert.rejects(openConfinedFolder('/no/such/program', folder), /not found/);
});
