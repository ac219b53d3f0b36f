import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { RunContext, Runner } from '@openai/agents-core';
import { Manifest, SandboxAgent, shell, urlForExposedPort } from '@openai/agents-core/sandbox';
import { assistantMessage, functionCall, ScriptedModel } from '@openai/agents-core/testing';
import { SvcSandboxClient, type SvcSandboxSession } from '@svc/openai-agents';
import { Sandbox } from '@svc/sdk';

const MOST_MS = 60_000;
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==';
/** Says by a file when it listens. */
const SERVE = `
from http.server import HTTPServer, SimpleHTTPRequestHandler
server = HTTPServer(('', 8000), SimpleHTTPRequestHandler)
open('/tmp/listens', 'w').close()
server.serve_forever()
`;
const client = new SvcSandboxClient({ image: 'python', exposedPorts: [8000] });

let session: SvcSandboxSession;
before(async () => {
  await mkdir('local/below', { recursive: true });
  await writeFile('local/below/note', 'from the host');
  const manifest = new Manifest({
    root: '/workspace',
    environment: { MODE: 'fast', TOKEN: { value: 'passing', ephemeral: true } },
    users: ['worker'],
    groups: [{ name: 'crew', users: ['worker'] }],
    entries: {
      'a/b': { type: 'dir', children: { note: { type: 'file', content: 'deep\n' } } },
      'run.sh': { type: 'file', content: 'echo ran', permissions: '-rwxr-x---', group: { name: 'crew' } },
      copied: { type: 'local_dir', src: 'local' },
      'copied-note': { type: 'local_file', src: 'local/below/note' },
      scratch: { type: 'dir', ephemeral: true },
    },
  });
  session = await client.create({ manifest });
});
after(() => session.close());

const run = (cmd: string, more: object = {}) => session.exec({ cmd, login: false, ...more });
const text = async (path: string) => new TextDecoder().decode(await session.readFile({ path }));

test('the manifest is made: folders, files, local ones, users and groups', async () => {
  assert.equal(await text('a/b/note'), 'deep\n');
  assert.equal(await text('copied/below/note'), 'from the host');
  assert.equal(await text('/workspace/copied-note'), 'from the host');
  assert.equal((await run('stat -c "%a %G" run.sh; id -Gn worker')).stdout, '750 crew\nworker crew\n');
});

test('a command gives both streams and its exit code', async () => {
  const done = await run('echo "$MODE"; pwd; echo wrong >&2; exit 3', { workdir: 'a' });
  assert.deepEqual([done.stdout, done.stderr, done.exitCode], ['fast\n/workspace/a\n', 'wrong\n', 3]);
  assert.equal((await run('kill -9 $$')).exitCode, 137);
  assert.equal((await run('id -un', { runAs: 'worker' })).stdout, 'worker\n');
  assert.equal((await session.exec({ cmd: 'echo $0', shell: '/bin/sh' })).stdout, '/bin/sh\n');
  assert.match(await session.execCommand({ cmd: 'seq 9999', maxOutputTokens: 10 }), /tokens truncated/);
});

test('a command that takes longer goes on, and is written to', async () => {
  for (const tty of [true, false]) {
    const cmd = 'echo ready; read line; echo "got $line"; exit 5';
    const { sessionId = 0, exitCode } = await run(cmd, { tty, yieldTimeMs: 300 });
    assert.equal(exitCode, undefined);
    const said = await session.writeStdin({ sessionId, chars: 'word\n', yieldTimeMs: MOST_MS });
    assert.match(said, /got word/);
    assert.match(said, /code 5/);
    assert.match(await session.writeStdin({ sessionId }), /session not found/);
    const asleep = await run('sleep 1000', { tty, yieldTimeMs: 100 });
    const stop = { sessionId: asleep.sessionId ?? 0, chars: '\u0003', yieldTimeMs: MOST_MS };
    assert.match(await session.writeStdin(stop), /code 130/);
  }
  assert.equal(session.supportsPty(), true);
});

test('files are read, listed and looked for, with the rights of a user', async () => {
  assert.deepEqual(await session.listDir({ path: 'a' }), [{ name: 'b', path: 'a/b', type: 'dir' }]);
  assert.equal((await session.readFile({ path: 'a/b/note', maxBytes: 2 })).byteLength, 2);
  assert.equal(await session.pathExists('a/b/note'), true);
  assert.equal(await session.pathExists('nowhere'), false);
  assert.deepEqual(
    [await session.directoryExists('a'), await session.directoryExists('run.sh')],
    [true, false],
  );
  await assert.rejects(session.readFile({ path: 'nowhere' }), { code: 'workspace_read_not_found' });
  await assert.rejects(session.readFile({ path: '/etc/passwd' }), /escapes the workspace root/);
  await run('echo mine > mine; chmod 600 mine');
  await assert.rejects(session.readFile({ path: 'mine', runAs: 'worker' }), /permission denied/);
});

test('an image is shown', async () => {
  await run(`base64 -d > pixel.png <<E\n${PIXEL}\nE`);
  assert.equal((await session.viewImage({ path: 'pixel.png' })).type, 'image');
  await assert.rejects(session.viewImage({ path: 'nowhere.png' }), /not found/);
  await assert.rejects(session.viewImage({ path: 'a' }), /not a file/);
});

test('patches are applied', async () => {
  const editor = session.createEditor();
  const context = { runContext: new RunContext() };
  await editor.createFile({ type: 'create_file', path: 'p/one', diff: '+first\n+second' }, context);
  const diff = '@@\n first\n-second\n+third';
  await editor.updateFile({ type: 'update_file', path: 'p/one', diff, moveTo: 'p/two' }, context);
  assert.match(await text('p/two'), /^first\nthird\n?$/);
  assert.equal(await session.pathExists('p/one'), false);
  await editor.deleteFile({ type: 'delete_file', path: 'p/two' }, context);
  const gone = async () => await editor.deleteFile({ type: 'delete_file', path: 'p/two' }, context);
  await assert.rejects(gone, { code: 'apply_patch_file_not_found' });
});

test('a manifest is added to while the session lasts', async () => {
  const entries = { later: { type: 'file', content: 'later' } } as const;
  await session.applyManifest(new Manifest({ entries, environment: { SPEED: 'high' } }), 'worker');
  assert.equal((await run('echo $SPEED; stat -c %U later')).stdout, 'high\nworker\n');
  await session.materializeEntry({ path: 'one/more', entry: { type: 'file', content: 'more' } });
  assert.equal(await text('one/more'), 'more');
});

test('a workspace is archived and restored, within limits', async () => {
  await run('echo passing > scratch/x; echo kept > kept');
  const archive = await session.persistWorkspace();
  await run('rm -rf kept scratch/x');
  await session.hydrateWorkspace(archive);
  assert.equal(await text('kept'), 'kept\n');
  assert.equal(await session.pathExists('scratch/x'), false);
  for (const field of ['maxInputBytes', 'maxExtractedBytes', 'maxMembers'])
    await assert.rejects(session.hydrateWorkspace(archive, { archiveLimits: { [field]: 3 } }), {
      code: 'archive_error',
      message: new RegExp(field),
    });
  session.setArchiveLimits({ maxMembers: 1000 });
  await session.hydrateWorkspace(archive);
});

test('ports that are exposed have addresses', async () => {
  await session.materializeEntry({ path: 'serve.py', entry: { type: 'file', content: SERVE } });
  await run('exec python3 serve.py 2> /dev/null', { yieldTimeMs: 0 });
  await run('until [ -e /tmp/listens ]; do sleep 0.05; done', { yieldTimeMs: MOST_MS });
  const endpoint = await session.resolveExposedPort(8000);
  assert.equal((await fetch(urlForExposedPort(endpoint, 'http'))).status, 200);
  await assert.rejects(session.resolveExposedPort(9000), /exposedPorts/);
});

test('a session is resumed with its files, until it is deleted', async () => {
  const first = await client.create(
    new Manifest({ environment: { TOKEN: { value: 'x', ephemeral: true } } }),
  );
  await first.exec({ cmd: 'echo kept > kept' });
  await first.sandbox.stop();
  assert.equal(await first.running(), false);
  const kept: unknown = JSON.parse(JSON.stringify(await client.serializeSessionState(first.state)));
  assert.ok(!JSON.stringify(kept).includes('"x"'));
  const state = await client.deserializeSessionState(kept as Record<string, unknown>);
  const again = await client.resume(state);
  assert.equal(new TextDecoder().decode(await again.readFile({ path: 'kept' })), 'kept\n');
  await client.delete(state);
  await client.delete(state);
  await assert.rejects(client.resume(state), { code: 'sandbox_not_found' });
});

test('what svc cannot do is refused, and leaves no sandbox', async () => {
  const mount = { type: 's3_mount', bucket: 'b', mountStrategy: { type: 'in_container' } } as const;
  await assert.rejects(client.create(new Manifest({ entries: { data: mount } })), /data.*s3_mount.*mounts/);
  await assert.rejects(client.create({ snapshot: { type: 'local' } }), /snapshot.*'local'.*snapshotId/);
  await assert.rejects(client.create({ options: { image: 'absent' } }));
  const outside = { x: { type: 'local_file', src: '/etc/hostname' } } as const;
  await assert.rejects(client.create(new Manifest({ entries: outside })), /src: \/etc\/hostname/);
  const other = await Sandbox.create({ image: 'python' });
  const stolen = { ...session.state, sandboxId: other.id };
  await assert.rejects(client.resume(stolen), /was not made for a session/);
  await other.remove();
  assert.equal((await Array.fromAsync(Sandbox.list())).length, 1);
});

test('an agent of the SDK works in a sandbox, which is gone afterwards', async () => {
  const model = new ScriptedModel([
    [functionCall('exec_command', { cmd: 'cat note; id -un' }, { callId: '1' })],
    [assistantMessage('done')],
  ]);
  const agent = new SandboxAgent({
    name: 'reader',
    model,
    runAs: 'worker',
    capabilities: [shell()],
    defaultManifest: new Manifest({ entries: { note: { type: 'file', content: 'from the manifest\n' } } }),
  });
  const runner = new Runner({ tracingDisabled: true, sandbox: { client, options: { memoryMib: 256 } } });
  const result = await runner.run(agent, 'Read the note');
  assert.equal(result.finalOutput, 'done');
  assert.match(JSON.stringify(model.calls[1]?.request.input), /from the manifest\\+nworker/);
  assert.equal((await Array.fromAsync(Sandbox.list())).length, 1);
});
