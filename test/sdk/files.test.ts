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

test('text that begins with a byte order mark is the same wherever it is read', async () => {
  const { sandbox } = real;
  const text = '\uFEFFname;size\n';
  await sandbox.files.write('/tmp/marked', text);
  assert.equal(await sandbox.files.readText('/tmp/marked'), text);
  assert.equal((await sandbox.exec('cat', ['/tmp/marked'])).text(), text);
  await using whole = await sandbox.commands.start('cat', ['/tmp/marked']);
  assert.equal(await whole.stdout.text(), text);
  await using again = await sandbox.commands.start('cat', ['/tmp/marked']);
  assert.equal((await Array.fromAsync(again.stdout.texts())).join(''), text);
});

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

test('a reader who leaves early, and a caller who aborts, disturb no other call', async () => {
  const { files, commands } = real.sandbox;
  await commands.run('dd', ['if=/dev/zero', 'of=/tmp/zeros', 'bs=1M', 'count=32']);
  for await (const chunk of files.readStream('/tmp/zeros')) {
    assert.ok(chunk.length > 0);
    break;
  }
  const controller = new AbortController();
  const reading = (async () => {
    for await (const _ of files.readStream('/tmp/zeros', { signal: controller.signal })) {
      controller.abort();
      // Meanwhile the read-ahead fails, and its rejection must be handled.
      for (let turns = 0; turns < 10; turns++) await new Promise((resolve) => setImmediate(resolve));
    }
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

test('folders keep their permissions on both ways, and those that were there stay as they are', async (t) => {
  const { sandbox } = real;
  const folder = await makeFolder(t);
  const tree = join(folder, 'tree');
  await mkdir(join(tree, 'closed/sealed'), { recursive: true });
  await writeFile(join(tree, 'closed/sealed/key'), 'secret');
  await chmod(join(tree, 'closed/sealed'), 0o500);
  await chmod(join(tree, 'closed'), 0o700);
  await sandbox.shell('mkdir -p /tmp/modes && chmod 1777 /tmp/modes');
  await uploadTree(sandbox, tree, '/tmp/modes');
  const modes = await sandbox.exec('stat', [
    '-c',
    '%a',
    '/tmp/modes',
    '/tmp/modes/closed',
    '/tmp/modes/closed/sealed',
  ]);
  assert.equal(modes.text(), '1777\n700\n500\n');
  await mkdir(join(folder, 'back'), { mode: 0o750 });
  await downloadTree(sandbox, '/tmp/modes', join(folder, 'back'));
  const modeOf = async (path: string) =>
    ((await lstat(join(folder, 'back', path))).mode & 0o7777).toString(8);
  assert.deepEqual(
    [await modeOf('.'), await modeOf('closed'), await modeOf('closed/sealed')],
    ['750', '700', '500'],
  );
  await chmod(join(folder, 'back/closed/sealed'), 0o700);
});

test('a link that leads nowhere is replaced, and a link to a folder stands for the folder that is copied', async (t) => {
  const { sandbox } = real;
  const folder = await makeFolder(t);
  await mkdir(join(folder, 'tree'));
  await symlink('nowhere', join(folder, 'tree/dangling'));
  await symlink('tree', join(folder, 'link'));
  await uploadTree(sandbox, join(folder, 'link'), '/tmp/linked');
  await uploadTree(sandbox, join(folder, 'link'), '/tmp/linked');
  assert.equal((await sandbox.files.stat('/tmp/linked', { followSymlink: false })).kind, 'directory');
  assert.equal(await sandbox.files.readLink('/tmp/linked/dangling'), 'nowhere');
});

test('the first file of a tree that fails ends the copy, is named, and nothing goes on behind it', async (t) => {
  const { sandbox } = real;
  const folder = await makeFolder(t);
  const tree = join(folder, 'tree');
  await mkdir(tree);
  for (let index = 0; index < 100; index++) await writeFile(join(tree, `f-${index}`), `${index}`);
  await sandbox.shell(
    'mkdir -p /tmp/partly/f-0 /tmp/partly/f-1 /tmp/partly/f-2 /tmp/partly/f-3 /tmp/partly/f-4',
  );
  const done: string[] = [];
  const copy = uploadTree(sandbox, tree, '/tmp/partly', { onFile: (path) => done.push(path) });
  await assert.rejects(copy, (error) => {
    assert.ok(SvcError.is(error, 'invalid_request'), String(error));
    assert.equal(error.details?.['errno'], 'EISDIR');
    return /^\/tmp\/partly\/f-[0-4]: /.test(error.message);
  });
  const count = done.length;
  // Calls of one connection are answered in their order, so further progress would be there by now.
  await sandbox.files.stat('/tmp/partly');
  assert.equal(done.length, count);
});

test('names that are not UTF-8 are refused by name, on both ways', async (t) => {
  const { sandbox } = real;
  const folder = await makeFolder(t);
  await mkdir(join(folder, 'tree'));
  await writeFile(Buffer.concat([Buffer.from(join(folder, 'tree/odd-')), Buffer.of(0xff)]), '');
  const isNamed = (error: unknown) =>
    SvcError.is(error, 'invalid_request') && /odd-\uFFFD: the name is not UTF-8/.test(error.message);
  await assert.rejects(uploadTree(sandbox, join(folder, 'tree'), '/tmp/odd'), isNamed);
  await sandbox.shell(`mkdir -p /tmp/odd && touch "/tmp/odd/$(printf 'odd-\\377')"`);
  await assert.rejects(downloadTree(sandbox, '/tmp/odd', join(folder, 'back')), isNamed);
});

test('content that fails itself is thrown as it is, and a tree has one time limit and one signal', async (t) => {
  const { sandbox } = real;
  const own = new Error('the disk of the caller');
  async function* failing() {
    yield new Uint8Array(10);
    throw own;
  }
  const isOwn = (error: unknown) => error === own;
  await assert.rejects(sandbox.files.write('/tmp/failing', failing()), isOwn);
  await assert.rejects(sandbox.exec('cat', [], { stdin: failing() }), isOwn);
  const folder = await makeFolder(t);
  await writeFile(join(folder, 'file'), '');
  const aborted = uploadTree(sandbox, folder, '/tmp/aborted', { signal: AbortSignal.abort() });
  await assert.rejects(aborted, (error) => SvcError.is(error, 'aborted'));
  await assert.rejects(uploadTree(sandbox, join(folder, 'none'), '/tmp/none'), { code: 'ENOENT' });
});

test('a download is never written through a link in its path', async (t) => {
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
