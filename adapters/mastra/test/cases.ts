import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createWorkspaceTools, supportsNetworking, Workspace, WORKSPACE_TOOLS } from '@mastra/core/workspace';
import { SvcSandbox } from '@svc/mastra';
import { Sandbox } from '@svc/sdk';

const MOST_MS = 60_000;
/** Says by a file when it listens. */
const SERVE = `
from http.server import HTTPServer, SimpleHTTPRequestHandler
server = HTTPServer(('', 8000), SimpleHTTPRequestHandler)
open('/tmp/listens', 'w').close()
server.serve_forever()
`;
const sandbox = new SvcSandbox({
  id: 'first',
  image: 'python',
  memoryMib: 256,
  workingDirectory: '/tmp',
  env: { MODE: 'fast' },
});
const workspace = new Workspace({ sandbox });
before(() => workspace.init());
after(() => workspace.destroy());

const all = async () => await Array.fromAsync(Sandbox.list());

async function run(command: string, options: object = {}, from = sandbox) {
  const result = await from.executeCommand?.(command, [], options);
  assert.ok(result);
  return result;
}

test('a command gives both streams and its exit code', async () => {
  const done = await run('echo "$MODE $SPEED"; pwd; echo wrong >&2; exit 3', { env: { SPEED: 'high' } });
  assert.deepEqual([done.stdout, done.stderr, done.exitCode], ['fast high\n/tmp\n', 'wrong\n', 3]);
  assert.equal(done.success, false);
  assert.equal((await run('pwd', { cwd: '/usr' })).stdout, '/usr\n');
  assert.equal((await run('cat; kill -9 $$')).exitCode, 137);
  assert.equal((await sandbox.executeCommand?.('echo', ['a b', "it's"]))?.stdout, "a b it's\n");
  sandbox.setEnv(({ MODE: _mode, ...env }) => ({ ...env, LATER: 'yes' }));
  assert.equal((await run('echo "$MODE$LATER"')).stdout, 'yes\n');
});

test('a command is ended by its timeout, or by its caller', async () => {
  const late = await run('sleep 1000 & echo begun; wait', { timeout: 300 });
  assert.deepEqual([late.timedOut, late.exitCode, late.stdout], [true, 124, 'begun\n']);
  const ended = await run('sleep 1000', { abortSignal: AbortSignal.timeout(200) });
  assert.deepEqual([ended.killed, ended.exitCode], [true, 137]);
});

test('output comes while a command runs, and the latest of it is kept', async () => {
  const heard: string[] = [];
  const done = await run('seq 1 9', { onStdout: (text: string) => heard.push(text), maxRetainedBytes: 4 });
  assert.equal(heard.join(''), '1\n2\n3\n4\n5\n6\n7\n8\n9\n');
  assert.deepEqual([done.stdout, done.stdoutTruncated, done.stdoutDroppedBytes], ['8\n9\n', true, 14]);
});

test('processes are written to, listed and killed', async () => {
  const processes = sandbox.processes;
  const cat = await processes?.spawn('cat; exit 4');
  assert.ok(cat && processes);
  await cat.sendStdin('said\n');
  await cat.closeStdin();
  assert.deepEqual([(await cat.wait()).exitCode, cat.stdout], [4, 'said\n']);
  await assert.rejects(cat.sendStdin('x'), /has exited with code 4/);
  const asleep = await processes.spawn('sleep 1000', { stdinMode: 'ignore' });
  await assert.rejects(asleep.sendStdin('x'), /stdinMode 'ignore'/);
  const listed = (await processes.list()).find(({ pid }) => pid === asleep.pid);
  assert.deepEqual([listed?.running, listed?.command], [true, 'sleep 1000']);
  assert.equal((await processes.get(asleep.pid))?.pid, asleep.pid);
  assert.equal(await processes.kill(asleep.pid), true);
  assert.equal((await asleep.wait()).exitCode, 137);
  assert.equal(await asleep.kill(), false);
});

test('files are written with their modes', async () => {
  await sandbox.writeFiles([
    { path: 'a/b/run', content: 'echo ran', mode: 0o700 },
    { path: '/tmp/bytes', content: Buffer.from([0, 255]) },
  ]);
  assert.equal((await run('a/b/run; od -An -tx1 bytes; stat -c %a a/b/run')).stdout, 'ran\n 00 ff\n700\n');
  await assert.rejects(sandbox.writeFiles([{ path: 'x', content: '', mode: 0 }]), {
    code: 'INVALID_ARGUMENT',
  });
  const abortSignal = AbortSignal.abort();
  await assert.rejects(sandbox.writeFiles([{ path: 'x', content: '' }], { abortSignal }), {
    code: 'ABORTED',
  });
});

test('ports have addresses while the sandbox runs', async () => {
  await sandbox.writeFiles([{ path: 'serve.py', content: SERVE }]);
  const server = await sandbox.processes?.spawn('exec python3 serve.py 2> /dev/null');
  await run('until [ -e listens ]; do sleep 0.05; done', { timeout: MOST_MS });
  assert.ok(supportsNetworking(sandbox));
  const address = await sandbox.networking.getPortUrl(8000);
  assert.equal((await fetch(address ?? '')).status, 200);
  assert.equal(await new SvcSandbox().networking.getPortUrl(8000), null);
  await server?.kill();
});

test('a sandbox is found by its id, with its files, also after it stopped', async () => {
  await run('echo kept > /root/kept');
  await sandbox.stop();
  const outcomes: unknown[] = [];
  const onStart = ({ outcome }: { readonly outcome?: string }): void => void outcomes.push(outcome);
  const again = new SvcSandbox({ id: 'first', onStart });
  assert.equal((await run('cat /root/kept', {}, again)).stdout, 'kept\n');
  const { metadata, resources, status } = await again.getInfo();
  assert.deepEqual([status, resources?.memoryMB, metadata?.['sandboxId']], ['running', 256, again.svc.id]);
  const named = new SvcSandbox({ sandboxId: again.svc.id, onStart });
  await named.start();
  assert.deepEqual(outcomes, ['connected', 'connected']);
  await assert.rejects(async () => await new SvcSandbox({ sandboxId: 'nowhere' }).start(), {
    code: 'sandbox_not_found',
  });
  // Of `sandbox` it was stopped by another; the next command starts it.
  await again.svc.stop();
  assert.equal((await run('cat /root/kept')).stdout, 'kept\n');
});

test('a clone begins with a checkpoint', async () => {
  await assert.rejects(sandbox.snapshot(), /checkpointName/);
  const first = sandbox.clone({ id: 'warm', checkpointName: 'warm', env: { SPEED: 'low' } });
  const made = await run('echo warm > /root/state; echo $SPEED; pwd', {}, first);
  assert.equal(made.stdout, 'low\n/tmp\n');
  await first.snapshot();
  await first.destroy();
  const options = {
    checkpointName: 'cold',
    seedCheckpointName: 'warm',
    idleTimeoutMinutes: 1,
    actingUserId: 'u1',
  };
  const second = sandbox.clone(options);
  assert.equal((await run('cat /root/state', {}, second)).stdout, 'warm\n');
  const { spec } = await second.svc.refresh();
  assert.deepEqual([spec?.lifecycle.idle_timeout_secs, spec?.labels['acting-user']], [60, 'u1']);
  await second.destroy();
  await assert.rejects(async () => await second.start(), /destroyed/);
});

test('what cannot be made leaves no sandbox', async () => {
  assert.throws(() => new SvcSandbox({ id: 'a b' }), /id becomes the name/);
  await assert.rejects(async () => await new SvcSandbox({ image: 'absent' }).start());
  assert.deepEqual(
    (await all()).map(({ name }) => name),
    ['mastra-first'],
  );
});

test('an agent of Mastra gets tools that run commands in it', async () => {
  const tools = await createWorkspaceTools(workspace);
  const tool = tools[WORKSPACE_TOOLS.SANDBOX.EXECUTE_COMMAND];
  const said = await tool?.execute?.({ command: 'echo from the tool' }, { workspace });
  assert.match(String(said), /from the tool/);
  assert.match(sandbox.getInstructions(), /\/bin\/sh\. Commands begin in \/tmp/);
});
