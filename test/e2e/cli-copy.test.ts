import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, lstat, mkdir, readdir, readFile, readlink, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { waitUntil } from '@svc/contract/testing';
import { BUSYBOX } from '../engine/start-engine.ts';
import { useCli } from './cli-line.ts';

const MIB = 1024 * 1024;
const cli = useCli((svc) => svc.succeed(['run', '-d', '--name', 'box', BUSYBOX]));

/** Everything below a folder: kind, permissions, content. */
async function describeTree(folder: string): Promise<Readonly<Record<string, string>>> {
  const found: Record<string, string> = {};
  for (const path of (await readdir(folder, { recursive: true })).toSorted()) {
    const full = join(folder, path);
    const stats = await lstat(full);
    const mode = (stats.mode & 0o777).toString(8);
    if (stats.isSymbolicLink()) found[path] = `link ${await readlink(full)}`;
    else
      found[path] = stats.isDirectory()
        ? `${mode} folder`
        : `${mode} ${(await readFile(full)).toString('base64')}`;
  }
  return found;
}

async function makeTree(name: string): Promise<string> {
  const folder = join(cli.svc.home, name);
  await mkdir(join(folder, 'deep/er/empty'), { recursive: true });
  await writeFile(join(folder, 'bytes'), randomBytes(3 * MIB + 17));
  await writeFile(join(folder, 'deep/run.sh'), '#!/bin/sh\n', { mode: 0o755 });
  await writeFile(join(folder, 'deep/er/ä ö "quoted" \\ file'), 'odd name', { mode: 0o600 });
  await chmod(join(folder, 'deep/er'), 0o700);
  await writeFile(join(folder, 'empty'), '');
  await symlink('deep/run.sh', join(folder, 'link'));
  for (let count = 0; count < 40; count++) await writeFile(join(folder, `deep/f${count}`), `${count}`);
  return folder;
}

test('a tree goes into a sandbox and comes out the same', async () => {
  const { svc } = cli;
  const tree = await makeTree('tree');
  await svc.succeed(['cp', tree, 'box:/there']);
  await svc.succeed(['cp', 'box:/there', join(svc.home, 'back')]);
  assert.deepEqual(await describeTree(join(svc.home, 'back')), await describeTree(tree));
});

test('into a folder that is there it goes under its own name; FOLDER/. is what the folder holds', async () => {
  const { svc } = cli;
  await mkdir(join(svc.home, 'src'));
  await writeFile(join(svc.home, 'src/a'), 'A');
  await chmod(join(svc.home, 'src/a'), 0o766);
  await svc.succeed(['exec', 'box', 'mkdir', '-p', '/into', '/content']);
  await svc.succeed(['cp', 'src', 'box:/into']);
  await svc.succeed(['cp', 'src/.', 'box:/content']);
  await svc.succeed(['cp', 'src/a', 'box:/into/']);
  const listed = await svc.succeed(['exec', 'box', 'find', '/into', '/content', '-type', 'f']);
  assert.deepEqual(listed.trim().split('\n').toSorted(), ['/content/a', '/into/a', '/into/src/a']);
  const modes = await svc.succeed(['exec', 'box', 'stat', '-c', '%a', '/into/a', '/into/src/a']);
  assert.equal(modes, '766\n766\n', 'permissions stay, with any mask');
  await mkdir(join(svc.home, 'out'));
  await svc.succeed(['cp', 'box:/into', 'out']);
  await svc.succeed(['cp', 'box:/into/src/.', 'out']);
  assert.deepEqual((await readdir(join(svc.home, 'out'))).toSorted(), ['a', 'into']);
});

test('- is stdin and stdout, of any size', async () => {
  const { svc } = cli;
  const content = randomBytes(8 * MIB + 1);
  await svc.succeed(['cp', '-', 'box:/piped'], content);
  const { code, bytes } = await svc.run(['cp', 'box:/piped', '-']);
  assert.equal(code, 0);
  assert.ok(bytes.equals(content), `${bytes.length} bytes came back`);
  const folder = await svc.run(['cp', 'box:/etc', '-']);
  assert.equal(folder.code, 2);
  assert.match(folder.stderr, /try: svc exec box tar/);
});

test('a link of the sandbox that leads out of what is copied is left out and named', async () => {
  const { svc } = cli;
  await svc.succeed([
    'exec',
    'box',
    'sh',
    '-c',
    'mkdir /trap; ln -s /etc/passwd /trap/out; echo in > /trap/in',
  ]);
  const { code, stderr } = await svc.run(['cp', 'box:/trap', 'trap']);
  assert.equal(code, 0);
  assert.match(stderr, /left out \/trap\/out/);
  assert.deepEqual(await readdir(join(svc.home, 'trap')), ['in']);
});

test('a failed copy names the file and the next command', async () => {
  const { svc } = cli;
  for (const [words, code, expected] of [
    [['cp', 'box:/nope', '.'], 1, /box:\/nope: .*\n {2}try: svc exec/],
    [['cp', 'nope', 'box:/'], 2, /there is no nope here\n {2}try: /],
    [['cp', 'a', 'b'], 2, /try: svc cp FILE NAME:\/path/],
    [['cp', 'box:/a', 'box:/b'], 2, /one side is in a sandbox/],
    [['cp', 'box:etc', '.'], 2, /try: box:\/etc/],
    [['cp', 'box:/etc/passwd', 'no/such/folder'], 1, /try: ls -ld no\/such/],
    [['cp', '.', 'box:/etc/passwd'], 1, /box:\/etc\/passwd: .*\n {2}try: svc exec box ls/],
  ] as const) {
    const outcome = await svc.run(words);
    assert.equal(outcome.code, code, `${words.join(' ')}: ${outcome.stderr}`);
    assert.match(outcome.stderr, expected);
  }
});

test('a named pipe is refused at once, and left out of a folder', async () => {
  const { svc } = cli;
  const folder = join(svc.home, 'with-pipe');
  await mkdir(folder);
  await writeFile(join(folder, 'file'), 'kept');
  await promisify(execFile)('mkfifo', [join(folder, 'pipe')]);
  await svc.succeed(['volume', 'create', 'pipes', '--capacity', '1']);
  for (const words of [
    ['volume', 'cp', 'with-pipe/pipe', 'pipes:/'],
    ['cp', 'with-pipe/pipe', 'box:/tmp/'],
  ]) {
    const { code, stderr } = await svc.run(words);
    assert.deepEqual([code, /is a named pipe.*\n {2}try: cat /.test(stderr)], [2, true], stderr);
  }
  const { code, stderr } = await svc.run(['volume', 'cp', 'with-pipe', 'pipes:/']);
  assert.deepEqual([code, /left out .*pipe: it is a named pipe/.test(stderr)], [0, true], stderr);
  assert.equal(await svc.succeed(['volume', 'cp', 'pipes:/with-pipe/file', '-']), 'kept');
  await svc.succeed(['volume', 'rm', 'pipes']);
});

test('a tree goes into a volume without a sandbox, and sandboxes that mount it see it', async () => {
  const { svc } = cli;
  const tree = await makeTree('for-volume');
  await svc.succeed(['volume', 'create', 'data', '--capacity', '1']);
  await svc.succeed(['volume', 'cp', tree, 'data:/']);
  await svc.succeed(['volume', 'cp', '-', 'data:/note'], 'noted');
  assert.equal(await svc.succeed(['volume', 'cp', 'data:/note', '-']), 'noted');
  const seen = ['run', '-v', 'data:/mnt:ro', BUSYBOX, 'cat', '/mnt/for-volume/deep/f7', '/mnt/note'];
  assert.equal(await svc.succeed(seen), '7noted');
  await svc.succeed(['volume', 'cp', 'data:/for-volume', 'volume-back']);
  const contents = async (folder: string) => await readFile(join(folder, 'bytes'));
  assert.ok((await contents(join(svc.home, 'volume-back'))).equals(await contents(tree)));
  assert.match(await svc.succeed(['volume', 'ls']), /data +3\.\d MiB +1\.0 GiB/);
  await svc.succeed(['volume', 'rm', 'data']);
  // What it took is freed soon after; until then it is shown as being deleted.
  await waitUntil(async () => {
    const { stdout, stderr } = await svc.run(['volume', 'inspect', 'data']);
    if (stdout !== '') assert.match(stdout, /"status": "deleting"/);
    return stderr.endsWith('try: svc volume ls\n');
  });
});
