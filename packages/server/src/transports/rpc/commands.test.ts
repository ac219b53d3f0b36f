import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { withEnoughTime } from '../../testing/enough-time.ts';
import { NEVER_STARTS } from '../../testing/fake-agent.ts';
import { startTestServer, type TestServer } from '../../testing/test-server.ts';

interface CommandResult {
  readonly command: string;
  readonly args: readonly string[];
  readonly exit_code: number;
  readonly success: boolean;
  readonly output: string;
  readonly error: string;
  readonly truncated?: boolean;
}

async function running(t: TestContext, config: object = {}): Promise<TestServer> {
  const server = await startTestServer(t);
  await server.call('sandbox.start', { sandbox: 'a', config: { image: 'x', ...config } });
  return server;
}

async function run(server: TestServer, command: string, args: readonly string[] = [], more: object = {}) {
  const answer = await server.call('sandbox.command.run', { sandbox: 'a', command, args, ...more });
  assert.equal(answer.error, undefined);
  return answer.result as unknown as CommandResult;
}

test('the result is what the program did, with nothing more in it', async (t) => {
  const server = await running(t);
  assert.deepEqual(await run(server, 'sh', ['-c', 'echo out; echo err >&2; exit 3']), {
    command: 'sh',
    args: ['-c', 'echo out; echo err >&2; exit 3'],
    exit_code: 3,
    success: false,
    output: 'out\n',
    error: 'err\n',
  });
  assert.deepEqual(await run(server, 'true'), {
    command: 'true',
    args: [],
    exit_code: 0,
    success: true,
    output: '',
    error: '',
  });
});

test('no shell is involved: words stay as they are', async (t) => {
  const server = await running(t);
  const words = ['a b', '$HOME', '*', '', '"', '; true', 'ü'];
  assert.equal(
    (await run(server, 'printf', ['%s|', ...words])).output,
    words.map((word) => `${word}|`).join(''),
  );
});

test('a command runs in the environment and the working directory of the sandbox', async (t) => {
  const server = await running(t, { envs: ['GREETING=hello = world'], workdir: '/usr' });
  assert.equal((await run(server, 'sh', ['-c', 'echo "$GREETING"; pwd'])).output, 'hello = world\n/usr\n');
});

test('a command takes a working directory, variables and input of its own', async (t) => {
  const server = await running(t, { envs: ['A=sandbox', 'B=sandbox'], workdir: '/usr' });
  const script = 'echo "$A $B"; pwd; cat';
  const more = { workdir: '/tmp', envs: ['A=own=1'], stdin: 'line 1\nline 2' };
  const { output } = await run(server, 'sh', ['-c', script], more);
  assert.equal(output, 'own=1 sandbox\n/tmp\nline 1\nline 2');
  const none = { workdir: null, envs: null, stdin: null };
  assert.equal((await run(server, 'sh', ['-c', script], none)).output, 'sandbox sandbox\n/usr\n');
  assert.equal((await run(server, 'true', [], { stdin: 'x'.repeat(1_000_000) })).exit_code, 0);
  const bad = await server.call('sandbox.command.run', { sandbox: 'a', command: 'env', envs: ['A'] });
  assert.match(bad.error?.message ?? '', /^Invalid params: envs/);
});

test('a line that was meant for a shell is answered with how to give it to one', async (t) => {
  const server = await running(t);
  const { error } = await server.call('sandbox.command.run', { sandbox: 'a', command: 'ls -la "/"' });
  assert.equal(
    error?.message,
    `command execution failed: 'ls -la "/"' not found in the sandbox: no shell is involved; give the program alone and its arguments as args, or "sh" with args ["-c", "ls -la \\"/\\""]`,
  );
});

test('death by signal n is exit code 128 + n', async (t) => {
  const server = await running(t);
  assert.equal((await run(server, 'sh', ['-c', 'kill -9 $$'])).exit_code, 137);
  assert.equal((await run(server, 'sh', ['-c', 'kill -15 $$'])).exit_code, 143);
});

test('a program that is not there is -32603 and is named', async (t) => {
  const server = await running(t);
  const { error } = await server.call('sandbox.command.run', { sandbox: 'a', command: 'no-such-program' });
  assert.equal(error?.code, -32_603);
  assert.match(error.message, /^command execution failed: 'no-such-program' not found in the sandbox/);
  assert.deepEqual(error.data, { code: 'exec_failed', reason: 'not_found', errno: 'ENOENT' });
});

test('a timeout kills everything the command started and gives back what it had said', async (t) => {
  const server = await running(t);
  const script = 'echo before; echo oops >&2; sleep 1000 & sleep 1000';
  const command = { sandbox: 'a', command: 'sh', args: ['-c', script] };
  const { seconds, outcome } = await withEnoughTime(
    async (timeout) => await server.call('sandbox.command.run', { ...command, timeout }),
    ({ error }) => (error?.data as { error?: string } | undefined)?.error === 'oops\n',
  );
  const { error } = outcome;
  assert.equal(error?.code, -32_603);
  assert.equal(error.message, `command execution failed: sh did not end within ${seconds} s`);
  const said = { output: 'before\n', error: 'oops\n' };
  assert.deepEqual(error.data, { code: 'exec_timeout', timeout: seconds, ...said });
});

test('a command that could not start in time is reported as timed out', async (t) => {
  const server = await running(t);
  const late = { sandbox: 'a', command: NEVER_STARTS, timeout: 0.02 };
  const { error } = await server.call('sandbox.command.run', late);
  assert.equal(error?.message, `command execution failed: ${NEVER_STARTS} did not end within 0.02 s`);
  assert.deepEqual(error.data, { code: 'exec_timeout', timeout: 0.02, output: '', error: '' });
});

test('a timeout in nanoseconds, as one client sends it, does not overflow', async (t) => {
  const server = await running(t);
  assert.equal((await run(server, 'echo', ['hi'], { timeout: 30_000_000_000 })).output, 'hi\n');
});

test('all output arrives, at every size and with arbitrary bytes', async (t) => {
  const server = await running(t);
  const big = await run(server, 'sh', ['-c', 'seq 1 200000']);
  assert.equal(big.output.length, 1_288_895);
  assert.ok(big.output.endsWith('200000\n'));
  assert.equal(big.truncated, undefined);
  assert.equal((await run(server, 'printf', ['a\\000b\\377'])).output, 'a\0b\u{fffd}');
});

test('output beyond 10 MiB is cut with a mark and said to be cut', async (t) => {
  const server = await running(t);
  const result = await run(server, 'sh', ['-c', 'head -c 11000000 /dev/zero | tr "\\0" x; echo fine >&2']);
  assert.equal(result.truncated, true);
  assert.ok(result.output.startsWith('xxx'));
  assert.ok(result.output.endsWith('\n[output cut here: it exceeds 10 MiB]\n'));
  assert.equal(result.output.indexOf('\n'), 10 * 1024 * 1024);
  assert.equal(result.error, 'fine\n');
});

test('commands run concurrently, and a slow one does not delay others', async (t) => {
  const server = await running(t);
  const slow = run(server, 'sleep', ['0.5']);
  const quick = await Promise.all(Array.from({ length: 20 }, (_, n) => run(server, 'echo', [String(n)])));
  assert.deepEqual(
    quick.map(({ output }) => output),
    Array.from({ length: 20 }, (_, n) => `${n}\n`),
  );
  assert.equal((await slow).exit_code, 0);
});

test('a command whose caller disconnects is killed', async (t) => {
  const server = await running(t);
  const marker = `3${process.pid}`;
  const gone = new AbortController();
  const body = JSON.stringify({
    jsonrpc: '2.0',
    method: 'sandbox.command.run',
    params: { sandbox: 'a', command: 'sleep', args: [marker] },
    id: 1,
  });
  const asked = fetch(`${server.url}/api/v1/rpc`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
    signal: gone.signal,
  });
  const isThere = async () => (await run(server, 'pgrep', ['-f', `^sleep ${marker}$`])).success;
  await waitUntil(isThere, 'the command');
  gone.abort();
  await assert.rejects(asked);
  await waitUntil(async () => !(await isThere()), 'the end of the command');
});

test('a command in a stopped or unknown sandbox says what to do', async (t) => {
  const server = await running(t);
  await server.call('sandbox.stop', { sandbox: 'a' });
  const stopped = await server.call('sandbox.command.run', { sandbox: 'a', command: 'true' });
  assert.equal(
    stopped.error?.message,
    "command execution failed: Sandbox 'a' is stopped; start it with sandbox.start",
  );
  assert.equal((stopped.error.data as { code: string }).code, 'sandbox_not_running');
  const ghost = await server.call('sandbox.command.run', { sandbox: 'ghost', command: 'true' });
  assert.equal(ghost.error?.message, "Sandbox 'ghost' not found in configuration");
});

test('a sandbox that is stopped under a running command ends the command with the reason', async (t) => {
  const server = await running(t);
  const asked = server.call('sandbox.command.run', {
    sandbox: 'a',
    command: 'sleep',
    args: [`100.${process.pid}`],
  });
  await waitUntil(async () => (await run(server, 'pgrep', ['-f', `^sleep 100.${process.pid}$`])).success);
  await server.call('sandbox.stop', { sandbox: 'a' });
  const { error } = await asked;
  assert.equal(
    error?.message,
    "command execution failed: Sandbox 'a' is stopped; start it with sandbox.start",
  );
});

test('the legacy path has output as lines and neither error nor has_error', async (t) => {
  const server = await running(t);
  const { result } = await server.call(
    'sandbox.command.run',
    { sandbox: 'a', command: 'sh', args: ['-c', 'echo one; echo; printf two; echo bad >&2'] },
    { path: '/legacy/api/v1/rpc' },
  );
  assert.deepEqual(result, {
    command: 'sh',
    args: ['-c', 'echo one; echo; printf two; echo bad >&2'],
    exit_code: 0,
    success: true,
    output: [
      { stream: 'stdout', text: 'one' },
      { stream: 'stdout', text: '' },
      { stream: 'stdout', text: 'two' },
      { stream: 'stderr', text: 'bad' },
    ],
  });
});
