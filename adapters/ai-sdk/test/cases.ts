import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { HarnessSandboxAuthenticationError, type HarnessV1NetworkSandboxSession } from '@ai-sdk/harness';
import { prepareSandboxForHarness, type HarnessAgentAdapter } from '@ai-sdk/harness/agent';
import { createSvcSandbox } from '@svc/ai-sdk';
import { Client, Sandbox } from '@svc/sdk';

const MOST_MS = 60_000;
/** Says by a file when it listens. */
const SERVE = `
from http.server import HTTPServer, SimpleHTTPRequestHandler
server = HTTPServer(('', 8000), SimpleHTTPRequestHandler)
open('/tmp/listens', 'w').close()
server.serve_forever()
`;
const provider = createSvcSandbox({
  image: 'python',
  workdir: '/tmp',
  env: { MODE: 'fast' },
  ports: [8000],
  networkPolicy: { mode: 'deny-all' },
});

let session: HarnessV1NetworkSandboxSession;
before(async () => {
  session = await provider.createSession();
});
after(() => session.destroy());

async function textOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  return await new Response(stream).text();
}

test('a command gives both streams and its exit code', async () => {
  const command = 'echo "$MODE $SPEED"; pwd; echo wrong >&2; exit 3';
  assert.deepEqual(await session.run({ command, env: { SPEED: 'high' } }), {
    exitCode: 3,
    stdout: 'fast high\n/tmp\n',
    stderr: 'wrong\n',
  });
  assert.equal((await session.run({ command: 'pwd', workingDirectory: '..' })).stdout, '/\n');
  assert.equal((await session.run({ command: 'kill -9 $$' })).exitCode, 137);
  assert.equal(session.defaultWorkingDirectory, '/tmp');
});

test('a result that is not whole is refused', async () => {
  await assert.rejects(async () => await session.run({ command: 'head -c 9000000 /dev/zero' }), {
    code: 'payload_too_large',
  });
});

test('an aborted command ends with the reason', async () => {
  const aborting = new AbortController();
  const reason = new Error('enough');
  const { stdout, ...spawned } = await session.spawn({
    command: 'echo begun; sleep 1000',
    abortSignal: aborting.signal,
  });
  await stdout.getReader().read();
  aborting.abort(reason);
  await assert.rejects(async () => await spawned.wait(), reason);
  await assert.rejects(
    async () => await session.run({ command: 'true', abortSignal: aborting.signal }),
    reason,
  );
});

test('a process streams its output until it ends or is killed', async () => {
  const ended = await session.spawn({ command: 'echo out; echo err >&2; exit 4' });
  assert.deepEqual(await Promise.all([textOf(ended.stdout), textOf(ended.stderr)]), ['out\n', 'err\n']);
  assert.deepEqual(await ended.wait(), { exitCode: 4 });
  await ended.kill();
  const killed = await session.spawn({ command: 'echo begun; sleep 1000' });
  assert.ok((killed.pid ?? 0) > 0);
  const said = textOf(killed.stdout);
  const failed = textOf(killed.stderr);
  await killed.kill();
  assert.deepEqual(await killed.wait(), { exitCode: 137 });
  await Promise.all([said, failed]);
});

test('files are written and read as text, bytes and streams', async () => {
  await session.writeTextFile({ path: 'a/b/note', content: 'one\ntwo\nthree\n' });
  const read = (more: object = {}) => session.readTextFile({ path: '/tmp/a/b/note', ...more });
  assert.equal(await read(), 'one\ntwo\nthree\n');
  assert.equal(await read({ startLine: 2, endLine: 2 }), 'two');
  assert.equal(await read({ startLine: 3, endLine: 99 }), 'three\n');
  await session.writeTextFile({ path: 'latin', content: 'ö', encoding: 'latin1' });
  assert.deepEqual(await session.readBinaryFile({ path: 'latin' }), new Uint8Array([0xf6]));
  assert.equal(await session.readTextFile({ path: 'latin', encoding: 'latin1' }), 'ö');
  await session.writeBinaryFile({ path: 'bytes', content: new Uint8Array([0, 255]) });
  const stream = await session.readFile({ path: 'bytes' });
  assert.ok(stream);
  await session.writeFile({ path: 'copies/bytes', content: stream });
  assert.deepEqual(await session.readBinaryFile({ path: 'copies/bytes' }), new Uint8Array([0, 255]));
  for (const absent of ['readFile', 'readBinaryFile', 'readTextFile'] as const)
    assert.equal(await session[absent]({ path: 'nowhere' }), null);
});

test('ports that are exposed have addresses', async () => {
  await session.writeTextFile({ path: 'serve.py', content: SERVE });
  const server = await session.spawn({ command: 'exec python3 serve.py 2> /dev/null' });
  const waited = 'until [ -e listens ]; do sleep 0.05; done';
  await session.run({ command: waited, abortSignal: AbortSignal.timeout(MOST_MS) });
  const { url } = await session.getPortEndpoint({ port: 8000 });
  assert.equal((await fetch(url)).status, 200);
  assert.match((await session.getPortEndpoint({ port: 8000, protocol: 'ws' })).url, /^ws:/);
  await assert.rejects(
    async () => await session.getPortEndpoint({ port: 8000, protocol: 'https' }),
    /without TLS/,
  );
  await session.setPorts?.([9000]);
  assert.deepEqual(session.ports, [9000]);
  await assert.rejects(
    async () => await session.getPortUrl({ port: 8000 }),
    /Port 8000 is not exposed, 9000 are/,
  );
  await server.kill();
});

test('the network policy is mapped, and can be changed', async () => {
  const sandbox = await Sandbox.connect(session.id);
  const verdict = async (host: string) => (await sandbox.network.explain({ host, port: 443 })).action;
  const hosts = ['api.example.org', 'www.example.com', '93.184.1.1', '93.184.9.1', '10.1.2.3'];
  const verdicts = async (from = 0) => (await Promise.all(hosts.slice(from).map(verdict))).join(' ');
  assert.equal(await verdicts(), 'deny deny deny deny deny');
  await session.setNetworkPolicy?.({
    mode: 'custom',
    allowedHosts: ['api.example.org', '*.example.com'],
    allowedCIDRs: ['93.184.0.0/16'],
    deniedCIDRs: ['93.184.9.0/24'],
  });
  assert.equal(await verdicts(), 'allow allow allow deny deny');
  await session.setNetworkPolicy?.({ mode: 'allow-all' });
  // Of names the answer is that of their addresses, which this machine may not find.
  assert.equal(await verdicts(2), 'allow allow deny');
});

test('a recipe of a harness is applied once', async () => {
  const recipe = {
    harnessId: 'counting',
    bootstrapDir: 'counting',
    files: [{ path: 'counting/line', content: 'x\n' }],
    commands: [{ command: 'cat line >> /tmp/counted' }],
  };
  // Of a harness only its name and its recipe are read here.
  const harness = {
    harnessId: 'counting',
    getBootstrap: async () => recipe,
  } as unknown as HarnessAgentAdapter;
  for (let round = 0; round < 2; round++)
    await prepareSandboxForHarness({ session: session.restricted(), harnesses: [harness] });
  assert.equal(await session.readTextFile({ path: '/tmp/counted' }), 'x\n');
  assert.equal('stop' in session.restricted(), false);
});

test('a session with an id is resumed with its files, until it is destroyed', async () => {
  let made = 0;
  const first = await provider.createSession({
    sessionId: 'kept',
    onFirstCreate: async (inner) => {
      made++;
      await inner.writeTextFile({ path: '/root/kept', content: 'kept' });
    },
  });
  assert.equal(made, 1);
  await first.stop();
  await first.stop();
  const again = await provider.resumeSession?.({ sessionId: 'kept' });
  assert.equal(again?.id, first.id);
  assert.equal(await again?.readTextFile({ path: '/root/kept' }), 'kept');
  await again?.destroy();
  await first.destroy();
  await assert.rejects(async () => await provider.resumeSession?.({ sessionId: 'kept' }), {
    code: 'sandbox_not_found',
  });
});

test('a session that cannot be made leaves no sandbox', async () => {
  const failing = provider.createSession({ onFirstCreate: () => Promise.reject(new Error('no')) });
  await assert.rejects(async () => await failing, /^Error: no$/);
  await assert.rejects(
    async () => await provider.createSession({ sessionId: 'a b' }),
    /sessionId becomes the name/,
  );
  const startless = createSvcSandbox({ image: 'python', workdir: '/etc/passwd' });
  await assert.rejects(async () => await startless.createSession({ sessionId: 'startless' }), {
    code: 'start_failed',
  });
  const client = new Client({ apiUrl: Client.ofEnvironment.apiUrl, apiKey: 'svc_wrong' });
  const refused = createSvcSandbox({ client }).createSession();
  await assert.rejects(
    async () => await refused,
    (error) => HarnessSandboxAuthenticationError.isInstance(error),
  );
  assert.equal((await Array.fromAsync(Sandbox.list())).length, 1);
});
