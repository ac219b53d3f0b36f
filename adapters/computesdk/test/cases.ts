import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { svc } from '@svc/computesdk';
import { compute, type SandboxInterface } from 'computesdk';

const MOST_MS = 60_000;
/** Says by a file when it listens. */
const SERVE = `
from http.server import HTTPServer, SimpleHTTPRequestHandler
server = HTTPServer(('', 8000), SimpleHTTPRequestHandler)
open('/tmp/listens', 'w').close()
server.serve_forever()
`;

let sandbox: SandboxInterface;
before(async () => {
  compute.setConfig({ provider: svc({ image: 'python' }) });
  sandbox = await compute.sandbox.create({
    metadata: { purpose: 'tests', tries: 2 },
    envs: { MODE: 'fast' },
  });
});
after(() => sandbox.destroy());

/** Fails when the condition, a command line, does not hold in time. */
async function waitFor(condition: string): Promise<void> {
  const { exitCode } = await sandbox.runCommand(`until ${condition}; do sleep 0.05; done`, {
    timeout: MOST_MS,
  });
  assert.equal(exitCode, 0);
}

test('a command gives both streams and its exit code', async () => {
  const line = 'echo "$MODE $SPEED"; pwd; echo wrong >&2; exit 3';
  const { stdout, stderr, exitCode } = await sandbox.runCommand(line, {
    cwd: '/tmp',
    env: { SPEED: 'high' },
  });
  assert.deepEqual(
    { stdout, stderr, exitCode },
    { stdout: 'fast high\n/tmp\n', stderr: 'wrong\n', exitCode: 3 },
  );
});

test('a command that a signal ended has the code of a shell', async () => {
  assert.equal((await sandbox.runCommand('kill -9 $$')).exitCode, 137);
});

test('a command ends with its time', async () => {
  await assert.rejects(sandbox.runCommand('sleep 1000', { timeout: 200 }), { code: 'exec_timeout' });
});

test('output comes while the command runs', async () => {
  const heard: string[] = [];
  let answered: Promise<void> | undefined;
  const line = 'echo question; until [ -e /tmp/answer ]; do sleep 0.05; done; echo error >&2';
  const { stdout } = await sandbox.runCommand(line, {
    timeout: MOST_MS,
    onStdout: (text) => {
      heard.push(text);
      answered = sandbox.filesystem.writeFile('/tmp/answer', '');
    },
    onStderr: (text) => heard.push(text),
  });
  await answered;
  assert.equal(stdout, 'question\n');
  assert.equal(heard.join(''), 'question\nerror\n');
});

test('a result that is not whole is refused', async () => {
  const line = 'head -c 9000000 /dev/zero';
  await assert.rejects(sandbox.runCommand(line), { code: 'payload_too_large' });
  let heard = 0;
  await sandbox.runCommand(line, { onStdout: ({ length }) => (heard += length) });
  assert.equal(heard, 9_000_000);
});

test('a command in the background keeps running', async () => {
  const line = 'until [ -e /tmp/begin ]; do sleep 0.05; done; touch /tmp/end';
  const { exitCode } = await sandbox.runCommand(line, { background: true });
  assert.equal(exitCode, 0);
  await sandbox.filesystem.writeFile('/tmp/begin', '');
  await waitFor('[ -e /tmp/end ]');
});

test('files are written, read, listed and removed', async () => {
  const { filesystem } = sandbox;
  await filesystem.writeFile('/tmp/a/b/note', 'größer');
  await filesystem.mkdir('/tmp/a/c');
  assert.equal(await filesystem.readFile('/tmp/a/b/note'), 'größer');
  const listed = await filesystem.readdir('/tmp/a');
  assert.deepEqual(
    listed.map(({ name, type }) => `${name} ${type}`),
    ['b directory', 'c directory'],
  );
  const [note] = await filesystem.readdir('/tmp/a/b');
  assert.equal(note?.size, 8);
  await filesystem.remove('/tmp/a');
  assert.equal(await filesystem.exists('/tmp/a'), false);
  await assert.rejects(filesystem.readFile('/tmp/a/b/note'), { code: 'not_found' });
});

test('a port has an address', async () => {
  await sandbox.filesystem.writeFile('/tmp/serve.py', SERVE);
  await sandbox.runCommand('python3 /tmp/serve.py', { background: true, cwd: '/tmp' });
  await waitFor('[ -e /tmp/listens ]');
  assert.equal((await fetch(await sandbox.getUrl({ port: 8000 }))).status, 200);
  assert.match(await sandbox.getUrl({ port: 8000, protocol: 'ws' }), /^ws:/);
  await assert.rejects(sandbox.getUrl({ port: 8000, protocol: 'https' }), { code: 'invalid_request' });
});

test('options have effect, or are refused by their names', async () => {
  const other = await compute.sandbox.create({
    runtime: 'python',
    timeout: 600_500,
    directory: '/tmp',
    svc: { network: { policy: { default_egress: 'deny' } } },
  });
  try {
    const { status, timeout, metadata } = await other.getInfo();
    assert.deepEqual({ status, timeout }, { status: 'running', timeout: 601_000 });
    assert.equal(metadata?.['made-by'], 'computesdk');
    assert.equal((await other.runCommand('pwd')).stdout, '/tmp\n');
  } finally {
    await other.destroy();
  }
  const refused = compute.sandbox.create({ namespace: 'mine' });
  await assert.rejects(refused, /svc has no option 'namespace': leave it out/);
});

test('sandboxes are found again until they are destroyed', async () => {
  const other = await compute.sandbox.create({ name: 'other' });
  const { metadata } = await sandbox.getInfo();
  assert.equal(metadata?.['purpose'], 'tests');
  assert.equal(metadata?.['tries'], '2');
  const ids = async () => (await compute.sandbox.list()).map(({ sandboxId }) => sandboxId).toSorted();
  assert.deepEqual(await ids(), [sandbox.sandboxId, other.sandboxId].toSorted());
  const again = await compute.sandbox.getById(other.sandboxId);
  assert.equal((await again?.runCommand('echo hello'))?.stdout, 'hello\n');
  await other.destroy();
  await compute.sandbox.destroy(other.sandboxId);
  assert.equal(await compute.sandbox.getById(other.sandboxId), null);
  assert.deepEqual(await ids(), [sandbox.sandboxId]);
});

test('a snapshot is what new sandboxes begin with', async () => {
  await sandbox.filesystem.writeFile('/root/kept', 'kept');
  const snapshot = await compute.snapshot.create(sandbox.sandboxId, { metadata: { step: 'one' } });
  assert.equal(snapshot.metadata?.['step'], 'one');
  assert.deepEqual(
    (await compute.snapshot.list()).map(({ id }) => id),
    [snapshot.id],
  );
  const copy = await compute.sandbox.create({ snapshotId: snapshot.id });
  try {
    assert.equal(await copy.filesystem.readFile('/root/kept'), 'kept');
  } finally {
    await copy.destroy();
    await compute.snapshot.delete(snapshot.id);
  }
  assert.deepEqual(await compute.snapshot.list(), []);
});
