import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { Channel } from './channel.ts';
import { checkedBinary, releaseBinary, shell } from './engine.ts';
import { fs, fsError, readAll, writeAll } from './file-calls.ts';

/** Serves a new folder the way the engine does: descriptor 0 is one end of a connected unix socket. */
async function serve(
  t: TestContext,
  binary: string,
  ...identity: string[]
): Promise<{ channel: Channel; dir: string; root: string; exited: Promise<unknown> }> {
  const root = mkdtempSync(join(tmpdir(), 'svc-files-'));
  const dir = join(root, 'served');
  mkdirSync(dir);
  const server = createServer();
  server.listen(join(root, 'sock'));
  await once(server, 'listening');
  // The shell connects its descriptor 0 and becomes svc-init.
  const connect =
    'import os,socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); os.dup2(s.fileno(),0); os.execv(sys.argv[2],sys.argv[2:])';
  const args = ['-c', connect, join(root, 'sock'), binary, 'serve-files', dir, ...identity];
  // The leak checker needs /proc, which is out of reach by design.
  const env = { ...process.env, ASAN_OPTIONS: 'detect_leaks=0' };
  const child = spawn('python3', args, { env, stdio: ['ignore', 'inherit', 'inherit'] });
  const exited = once(child, 'exit');
  t.after(async () => {
    child.kill('SIGKILL');
    await exited;
    server.close();
    rmSync(root, { recursive: true, force: true });
  });
  const [socket] = (await once(server, 'connection')) as [Socket];
  let early = Buffer.alloc(0);
  while (early.length < 8) early = Buffer.concat([early, ((await once(socket, 'data')) as [Buffer])[0]]);
  assert.equal(early.toString('hex', 0, 8), '00000001ffffffff');
  const channel = new Channel(socket, 1, early.subarray(8));
  await channel.takeType('core.ready');
  return { channel, dir, root, exited };
}

for (const binary of [checkedBinary, releaseBinary]) {
  test(`a folder is served as the root, and no link leads out of it (${binary.split('/').at(-1)})`, async (t) => {
    const { channel, dir, root } = await serve(t, binary);
    writeFileSync(join(root, 'secret'), 'host secret');
    symlinkSync('/etc/passwd', join(dir, 'passwd'));
    symlinkSync('../secret', join(dir, 'up'));
    symlinkSync('/', join(dir, 'slash'));
    symlinkSync('/proc/self/root/etc/passwd', join(dir, 'proc'));
    for (const path of [
      '/passwd',
      '/up',
      '/slash/etc/passwd',
      '/proc',
      '/../secret',
      '../../../etc/passwd',
      '/slash/../../etc/passwd',
    ]) {
      await fsError(channel, 'OpenFile', { path, options: { read: true } });
      await fsError(channel, 'SetStat', { path, follow_symlink: true, attrs: { mode: 0o777 } });
    }
    await writeAll(channel, '/slash/inside', Buffer.from('stays'));
    assert.equal(readFileSync(join(dir, 'inside'), 'utf8'), 'stays');
    await fs(channel, 'Symlink', { target: '/etc/shadow', link_path: '/mine' });
    await fsError(channel, 'Copy', { src: '/mine', dst: '/copy' });
    await fs(channel, 'Mkdir', { path: '/etc' });
    await writeAll(channel, '/mine', Buffer.from('inside too'));
    assert.equal(readFileSync(join(dir, 'etc/shadow'), 'utf8'), 'inside too');
    await fs(channel, 'RemoveDir', { path: '/slash/etc', recursive: true });
    assert.ok(existsSync('/etc/passwd') && !existsSync(join(dir, 'etc')));
    assert.deepEqual(await fs(channel, 'RealPath', { path: '/../..' }), { Path: '/' });
  });
}

test('files belong to the identity it was given, and files of others can be worked with', async (t) => {
  const { channel, dir } = await serve(t, releaseBinary, '12345', '23456');
  execFileSync('chown', ['12345:23456', dir]);
  await writeAll(channel, '/mine', Buffer.from('x'));
  assert.deepEqual([statSync(join(dir, 'mine')).uid, statSync(join(dir, 'mine')).gid], [12345, 23456]);
  writeFileSync(join(dir, 'theirs'), 'theirs', { mode: 0o600 });
  assert.equal((await readAll(channel, '/theirs')).toString(), 'theirs');
  await fs(channel, 'SetStat', { path: '/theirs', follow_symlink: true, attrs: { uid: 12345, mode: 0o640 } });
  assert.deepEqual(
    [statSync(join(dir, 'theirs')).uid, statSync(join(dir, 'theirs')).mode & 0o777],
    [12345, 0o640],
  );
});

test('only file work, ping and touch are served', async (t) => {
  const { channel } = await serve(t, checkedBinary);
  assert.equal((await channel.call('core.ping')).type, 'core.pong');
  assert.equal((await channel.call('core.touch')).type, 'core.touched');
  const refused = await shell(channel, 'echo no');
  assert.deepEqual(
    [refused.end.type, refused.end.payload['kind']],
    ['core.error', 'unsupported_message_type'],
  );
  assert.equal(
    (await channel.call('core.tcp.connect', { host: '127.0.0.1', port: 1 })).payload['kind'],
    'unsupported_message_type',
  );
});

test('devices and hard links give no way out, and the end of the connection ends the program', async (t) => {
  const { channel, dir, exited } = await serve(t, checkedBinary);
  execFileSync('mknod', [join(dir, 'null'), 'c', '1', '3']);
  writeFileSync(join(dir, 'a'), 'a');
  linkSync(join(dir, 'a'), join(dir, 'b'));
  await fsError(channel, 'OpenFile', { path: '/null', options: { read: true } });
  assert.equal((await readAll(channel, '/b')).toString(), 'a');
  channel.socket.end();
  assert.deepEqual(await exited, [0, null]);
});

test('a folder that is a link or does not exist is not served', () => {
  const root = mkdtempSync(join(tmpdir(), 'svc-files-'));
  symlinkSync('/etc', join(root, 'link'));
  for (const args of [[join(root, 'link')], [join(root, 'none')], [root, '1'], [root, '-1', '0']]) {
    assert.throws(() => execFileSync(releaseBinary, ['serve-files', ...args], { stdio: 'pipe' }));
  }
  rmSync(root, { recursive: true });
});
