import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { chmod, lstat, mkdir, mkdtemp, readFile, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { SvcError } from '@svc/sdk';
import { downloadTree, uploadTree } from '@svc/sdk/node';
import { useRealServer } from './real-server.ts';

const MIB = 1024 * 1024;
const real = useRealServer();

async function makeFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-sdk-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

function codeOf(error: unknown): string {
  return SvcError.is(error) ? `${error.code} ${String(error.details?.['errno'])}` : String(error);
}

test('files are written, read, listed, moved, copied and removed', async () => {
  const { files } = real.sandbox;
  await files.mkdir('/tmp/a/b');
  await files.write('/tmp/a/b/text', 'grüße', { mode: 0o640 });
  assert.equal(await files.readText('/tmp/a/b/text'), 'grüße');
  const { name, kind, sizeBytes, mode, modifiedAt } = await files.stat('/tmp/a/b/text');
  assert.deepEqual([name, kind, sizeBytes, mode], ['text', 'file', 7, 0o640]);
  assert.ok(modifiedAt !== null && Math.abs(Date.now() - modifiedAt.getTime()) < 120_000);
  await files.copy('/tmp/a/b/text', '/tmp/a/copy');
  await files.rename('/tmp/a/copy', '/tmp/a/moved');
  await files.symlink('b/text', '/tmp/a/link');
  assert.equal(await files.readLink('/tmp/a/link'), 'b/text');
  const listed = (await files.list('/tmp/a')).map((entry) => `${entry.name} ${entry.kind}`);
  assert.deepEqual(listed, ['b directory', 'link symlink', 'moved file']);
  assert.equal((await files.stat('/tmp/a/link')).kind, 'file');
  assert.equal((await files.stat('/tmp/a/link', { followSymlink: false })).kind, 'symlink');
  await files.remove('/tmp/a/link');
  await files.remove('/tmp/a', { recursive: true });
  assert.equal(await files.exists('/tmp/a'), false);
});

test('failures have a code to act on and the errno', async () => {
  const { files } = real.sandbox;
  const failures = [
    files.read('/no/such/file'),
    files.write('/proc/version', 'x'),
    files.remove('/etc'),
    files.read('/tmp'),
  ].map((call) => call.then(String, codeOf));
  const [missing = '', ...others] = await Promise.all(failures);
  assert.equal(missing, 'not_found ENOENT');
  assert.match(others[0] ?? '', /^forbidden E(ACCES|PERM|ROFS)|^invalid_request EIO/);
  assert.equal(others[1], 'invalid_request ENOTEMPTY');
  assert.equal(others[2], 'invalid_request EISDIR');
});

test('a file of 40 MiB goes up and down in streams and stays the same', async () => {
  const { files } = real.sandbox;
  const pieces = Array.from({ length: 40 }, () => randomBytes(MIB));
  const sent = createHash('sha256');
  async function* source() {
    for (const piece of pieces) {
      sent.update(piece);
      yield piece;
    }
  }
  await files.write('/tmp/big', source());
  const received = createHash('sha256');
  for await (const chunk of files.readStream('/tmp/big')) received.update(chunk);
  const digest = sent.digest('hex');
  assert.equal(received.digest('hex'), digest);
  assert.equal((await real.sandbox.exec('sha256sum', ['/tmp/big'])).text().split(' ')[0], digest);
  await assert.rejects(files.read('/tmp/big', { maxBytes: MIB }), (error) =>
    SvcError.is(error, 'payload_too_large'),
  );
  await files.remove('/tmp/big');
});

test('a web stream can be piped into a file', async () => {
  const { files } = real.sandbox;
  const text = 'piped '.repeat(100_000);
  await new Blob([text]).stream().pipeTo(files.writeStream('/tmp/piped'));
  assert.equal(await files.readText('/tmp/piped'), text);
  const nowhere = new Blob([text]).stream().pipeTo(files.writeStream('/no/such/folder/file'));
  await assert.rejects(nowhere, (error) => SvcError.is(error, 'not_found'));
});

test('a reader who leaves early, and a caller who aborts, harm nobody else', async () => {
  const { files, commands } = real.sandbox;
  await commands.run('dd', ['if=/dev/zero', 'of=/tmp/zeros', 'bs=1M', 'count=32']);
  for await (const chunk of files.readStream('/tmp/zeros')) {
    assert.ok(chunk.length > 0);
    break;
  }
  const controller = new AbortController();
  const reading = (async () => {
    for await (const _ of files.readStream('/tmp/zeros', { signal: controller.signal })) controller.abort();
  })();
  await assert.rejects(reading, (error) => SvcError.is(error, 'aborted'));
  assert.equal((await files.read('/tmp/zeros')).length, 32 * MIB);
});

test('a tree goes up and comes down with its modes and links', async (t) => {
  const { sandbox } = real;
  const folder = await makeFolder(t);
  const tree = join(folder, 'tree');
  await mkdir(join(tree, 'deep/er'), { recursive: true });
  await writeFile(join(tree, 'deep/er/script'), 'echo hi\n');
  await chmod(join(tree, 'deep/er/script'), 0o755);
  for (let index = 0; index < 30; index++) await writeFile(join(tree, `file-${index}`), `${index}`);
  await symlink('deep/er/script', join(tree, 'link'));
  const sent: string[] = [];
  await uploadTree(sandbox, tree, '/tmp/tree', { onFile: (path) => sent.push(path) });
  assert.equal(sent.length, 31);
  assert.equal(
    (await sandbox.shell('/tmp/tree/deep/er/script && readlink /tmp/tree/link')).text(),
    'hi\ndeep/er/script\n',
  );
  // A second time, over what is there.
  await uploadTree(sandbox, tree, '/tmp/tree');
  await sandbox.shell(
    'ln -s /etc/passwd /tmp/tree/out; ln -s ../../etc /tmp/tree/deep/out; mkfifo /tmp/tree/fifo',
  );
  const { skippedLinks } = await downloadTree(sandbox, '/tmp/tree', join(folder, 'back'));
  assert.deepEqual(skippedLinks.toSorted(), ['/tmp/tree/deep/out', '/tmp/tree/out']);
  assert.equal((await lstat(join(folder, 'back/deep/er/script'))).mode & 0o777, 0o755);
  assert.equal(await readFile(join(folder, 'back/file-29'), 'utf8'), '29');
  assert.equal(await readlink(join(folder, 'back/link')), 'deep/er/script');
  await assert.rejects(lstat(join(folder, 'back/out')));
});

test('what comes down is never written through a link that stands in the way', async (t) => {
  const { sandbox } = real;
  const folder = await makeFolder(t);
  await sandbox.shell(
    'mkdir -p /tmp/trap/sub && echo evil > /tmp/trap/file && echo evil > /tmp/trap/sub/file',
  );
  await mkdir(join(folder, 'outside'));
  await writeFile(join(folder, 'victim'), 'good');
  await mkdir(join(folder, 'first'));
  await symlink(join(folder, 'victim'), join(folder, 'first/file'));
  await assert.rejects(downloadTree(sandbox, '/tmp/trap', join(folder, 'first')));
  await mkdir(join(folder, 'second'));
  await symlink(join(folder, 'outside'), join(folder, 'second/sub'));
  await assert.rejects(downloadTree(sandbox, '/tmp/trap', join(folder, 'second')));
  assert.equal(await readFile(join(folder, 'victim'), 'utf8'), 'good');
  await assert.rejects(lstat(join(folder, 'outside/file')));
});
