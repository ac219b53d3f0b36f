import assert from 'node:assert/strict';
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { BUSYBOX } from '../engine/start-engine.ts';
import { isLacking, ReferenceClient, type Ended } from './reference-client.ts';

interface Seen extends Readonly<Record<string, unknown>> {
  /** Null when this version of the library has no call for the files of a server's volumes. */
  readonly volume: { readonly names: readonly string[]; readonly root: readonly string[] } | null;
  readonly logs: readonly string[];
}

let client: ReferenceClient;
// What the program saw, looked into by each test.
let seen: Seen;
before(async () => {
  client = await ReferenceClient.start();
  seen = (await client.program('sdk-program.mjs', BUSYBOX)) as Seen;
});
after(() => client.destroy());

test('processes: output, exit codes, stdin, user, environment, timeouts and streams', () => {
  assert.deepEqual(seen['exec'], { code: 5, stdout: 'out\n/tmp\n1\n', stderr: 'err\n' });
  assert.equal(seen['stdin'], 'bytes');
  assert.equal(seen['user'], '1000\n');
  assert.equal(seen['env'], '2\n');
  assert.equal(seen['timeout'], 'execTimeout');
  assert.deepEqual(seen['stream'], ['started', 'got typed\n', -1]);
});

test('files of a sandbox: every call of the library', () => {
  assert.deepEqual(seen['files'], {
    isSame: true,
    isSameStreamed: true,
    streamed: 'part 0;part 1;part 2;',
    names: ['/tmp/d/big', '/tmp/d/e', '/tmp/d/renamed', '/tmp/d/streamed'],
    size: 7_000_000,
    exists: [true, false],
    missing: 'sandboxFsOps',
    isGone: true,
  });
});

test('ssh and sftp of the library', () => {
  assert.deepEqual(seen['ssh'], {
    status: 6,
    stdout: 'over ssh\n',
    read: 'by sftp',
    link: '/tmp/s/f',
    real: '/tmp/s/g',
  });
});

test('volumes with a capacity', () => {
  assert.equal(seen['quota'], 2048);
  assert.equal(seen['volumeTwice'], 'sandboxAlreadyExists');
});

test('files of the default volume', () => {
  if (seen.volume === null) return assert.ok(isLacking('files of volumes'));
  const { names, root, ...rest } = seen.volume;
  assert.deepEqual(
    names.map((path) => path.split('/').at(-1)),
    ['a.txt', 'b.txt', 'd.txt'],
  );
  assert.equal(root.length, 1);
  assert.deepEqual(rest, {
    a: 'first',
    d: 'second half',
    size: 5,
    exists: [true, false],
    missing: 'sandboxFsOps',
    escape: 'invalidConfig',
    isGone: true,
  });
});

test('pages, logs that go on behind a cursor, life cycle and error codes', () => {
  assert.deepEqual(seen['pages'], [
    [['page-2'], true],
    [['page-1'], false],
  ]);
  assert.equal(seen.logs.length, 2);
  assert.notEqual(seen.logs[0], seen.logs[1]);
  assert.deepEqual([seen['stopped'], seen['restarted']], ['stopped', 'running']);
  assert.equal(seen['taken'], 'sandboxAlreadyExists');
  assert.equal(seen['reused'], isLacking('connectOrCreate') ? null : 'on its disk');
  assert.equal(seen['removed'], 'sandboxNotFound');
  assert.equal(seen['invalid'], 'invalidConfig');
});

test('OpenSSH and its sftp reach a sandbox through the library, and a port inside it', async () => {
  const { folder } = client;
  for (const name of ['host', 'user'])
    await done('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(folder, name)]);
  await copyFile(join(folder, 'user.pub'), join(folder, 'authorized'));
  const proxy = client.node(join(import.meta.dirname, 'ssh-proxy.mjs'), 'page-1');
  const options = [
    ['ProxyCommand', `${proxy.join(' ')} ${join(folder, 'host')} ${join(folder, 'authorized')}`],
    ['IdentityFile', join(folder, 'user')],
    ['IdentitiesOnly', 'yes'],
    ['StrictHostKeyChecking', 'no'],
    ['UserKnownHostsFile', '/dev/null'],
    ['LogLevel', 'ERROR'],
  ].flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  const ran = await client.run('ssh', ['-F', 'none', ...options, 'root@box', 'echo by openssh; exit 3']);
  assert.deepEqual([ran.code, ran.stdout], [3, 'by openssh\n'], ran.stderr);

  await writeFile(join(folder, 'up'), 'sent by sftp');
  await writeFile(
    join(folder, 'batch'),
    `put ${join(folder, 'up')} /tmp/up\nget /tmp/up ${join(folder, 'down')}\n`,
  );
  await done('sftp', ['-F', 'none', ...options, '-b', join(folder, 'batch'), 'root@box']);
  assert.equal(await readFile(join(folder, 'down'), 'utf8'), 'sent by sftp');

  // It listens when its socket is in the table: 7070 is 1B9E, 0A is listening.
  const serve =
    'setsid nc -l -p 7070 -e echo from inside >/dev/null 2>&1 & until grep -qs ":1B9E .* 0A " /proc/net/tcp /proc/net/tcp6; do sleep 0.05; done';
  await done('ssh', ['-F', 'none', ...options, 'root@box', serve]);
  assert.equal(
    await done('ssh', ['-F', 'none', ...options, '-W', '127.0.0.1:7070', 'root@box']),
    'from inside\n',
  );
});

async function done(command: string, args: readonly string[]): Promise<string> {
  const { code, stdout, stderr }: Ended = await client.run(command, args);
  assert.equal(code, 0, `${command}: ${stderr}`);
  return stdout;
}
