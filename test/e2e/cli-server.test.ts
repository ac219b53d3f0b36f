import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test, type TestContext } from 'node:test';
import { EXIT, findServer } from '@svc/server/admin';

const SVC = resolve(import.meta.dirname, '../../svc');
/** There is none behind it, and none is started. */
const NO_ENGINE = ['--engine-socket', '/nowhere/engine.sock'];
const TIMEOUT_MS = 110_000;
const LISTEN = `
import socket, sys
heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
heard.bind(sys.argv[1])
print('listening', flush=True)
wanted = [b'READY=1', b'WATCHDOG=1', b'WATCHDOG=1']
while wanted:
    message = heard.recv(4096)
    for word in wanted:
        if word in message: wanted.remove(word); break
`;

interface Outcome {
  readonly code: number | string | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function runCli(
  words: readonly string[],
  env: Readonly<Record<string, string>>,
  input = '',
): Promise<Outcome> {
  return await runProgram(SVC, words, env, input);
}

async function runProgram(
  program: string,
  words: readonly string[],
  env: Readonly<Record<string, string>>,
  input = '',
): Promise<Outcome> {
  return await new Promise((settle) => {
    const options = { env: { PATH: process.env['PATH'], ...env }, timeout: TIMEOUT_MS };
    const child = execFile(program, words, options, (error, stdout, stderr) =>
      settle({ code: error === null ? 0 : (error.code ?? null), stdout, stderr }),
    );
    child.stdin?.end(input);
  });
}

/** `svc server` on a data folder of its own; what it started ends with the test. */
async function serverLine(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-cli-server-'));
  await chmod(folder, 0o711);
  const line = (...words: readonly string[]) => runCli(['server', ...words], { SVC_HOME: folder });
  t.after(async () => {
    await line('stop');
    await rm(folder, { recursive: true, force: true });
  });
  const start = (...words: readonly string[]) =>
    line('start', '--detach', '--run-as', '64555:64555', '--port', '0', ...words);
  return { folder, line, start };
}

test('start, status, logs and stop print the state and the next command, each with its exit code', async (t) => {
  const { folder, line, start } = await serverLine(t);
  const idle = await line('status');
  assert.deepEqual(
    [idle.code, idle.stdout],
    [3, `no server runs on the data folder ${folder}\n  next: svc server start --detach\n`],
  );
  const started = await start('--dev', ...NO_ENGINE);
  assert.equal(started.code, 0, started.stderr);
  const [, url = '', pid = ''] =
    /^server started on (http:\S+) \(pid (\d+)\), data in \S+\n/.exec(started.stdout) ?? [];
  assert.match(
    started.stdout,
    /\n {2}it cannot run sandboxes yet: .*\n {2}nothing restarts it when it is killed.* svc install --systemd\n {2}dashboard: http:\S+\/\n {2}no key is needed \(--dev\)\n$/s,
  );
  const again = await start('--dev');
  assert.equal(again.code, EXIT.alreadyRunning);
  assert.equal(
    again.stdout,
    `the server of ${folder} runs already on ${url} (pid ${pid})\n  next: svc server status\n`,
  );
  const status = await line('status', '--json');
  assert.equal(status.code, 0);
  assert.partialDeepStrictEqual(JSON.parse(status.stdout), {
    running: true,
    url,
    authentication_required: false,
  });
  assert.match((await line('logs')).stdout, /info +the server listens/);
  const asked = await runCli(['mcp'], { SVC_SERVER_URL: url }, '{"jsonrpc":"2.0","id":7,"method":"ping"}\n');
  // It was asked, and says that this is no way to begin.
  assert.match(asked.stdout, new RegExp(`"id":7,.*the server at ${url} refused.*not initialized`));
  const [web = ''] = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).split(' ');
  // So that the supervisor starts no other process before the test has asked.
  process.kill(Number(pid), 'SIGSTOP');
  process.kill(Number(web), 'SIGKILL');
  const between = await line('status');
  process.kill(Number(pid), 'SIGCONT');
  assert.deepEqual(
    [between.code, between.stdout],
    [
      1,
      `the supervisor (pid ${pid}) was stopped by a signal and replaces nothing that ends; continue it with: kill -CONT ${pid}\n` +
        `the server (pid ${pid}) does not answer yet\n  next: svc server logs\n`,
    ],
  );
  const stopped = await line('stop');
  assert.deepEqual(
    [stopped.code, stopped.stdout],
    [0, `server stopped (data in ${folder}); its sandboxes run on. Next: svc server start --detach\n`],
  );
  assert.equal((await line('stop')).stdout, `no server runs on the data folder ${folder}\n`);
});

test('without a terminal the command becomes the server: ending one ends the other, and systemd gets readiness and watchdog messages', async (t) => {
  const { folder, line } = await serverLine(t);
  const words = ['server', 'start', '--run-as', '64555:64555', '--port', '0', '--dev', ...NO_ENGINE];
  const socket = join(folder, 'notify.sock');
  // It hears what a service manager does, and ends when a service has said that it is ready, and twice that it lives.
  const manager = spawn('python3', ['-c', LISTEN, socket], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => manager.kill('SIGKILL'));
  await once(manager.stdout, 'data');
  const env = { PATH: process.env['PATH'], SVC_HOME: folder, NOTIFY_SOCKET: socket, WATCHDOG_USEC: '600000' };
  const child = spawn(SVC, words, { env, stdio: 'ignore' });
  t.after(() => child.kill('SIGKILL'));
  assert.deepEqual(await once(manager, 'exit'), [0, null]);
  assert.equal((await line('status')).code, 0);
  assert.equal(await findServer(folder), child.pid);
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null]);
});

test('a start that fails says why it failed, not why earlier ones did, and what to do', async (t) => {
  const { folder, start } = await serverLine(t);
  await writeFile(join(folder, 'server.log'), '{"level":60,"time":0,"msg":"long ago"}\n');
  const taken = createServer().listen(0, '127.0.0.1');
  t.after(() => taken.close());
  await once(taken, 'listening');
  const { port } = taken.address() as { port: number };
  const { code, stderr } = await start('--port', String(port), ...NO_ENGINE);
  assert.equal(code, EXIT.addressInUse);
  assert.match(stderr, /^error: the server did not start; the end of its log says:\n/);
  assert.match(
    stderr,
    new RegExp(`listens on port ${port} of 127\\.0\\.0\\.1; stop it, or choose another port`),
  );
  assert.doesNotMatch(stderr, /long ago/);
});

test('at a terminal a bad option is answered in words, not as a line of the log', async (t) => {
  const { folder } = await serverLine(t);
  const typed = `${SVC} server start --path ${folder} --port many`;
  const { code, stdout } = await runProgram('script', ['-qec', typed, '/dev/null'], {});
  assert.equal(code, EXIT.usage);
  assert.equal(
    stdout.replaceAll('\r', ''),
    'error: --port must be a whole number up to 65535, not many\n  try: svc server start --help\n',
  );
});

test('the first start shows the owner a link on a terminal, never in a log or to a pipe, and it works once', async (t) => {
  const { folder, line, start } = await serverLine(t);
  const piped = await start(...NO_ENGINE);
  assert.equal(piped.code, 0, piped.stderr);
  assert.match(piped.stdout, /\n {2}no account yet; .*: svc user link\n/);
  assert.doesNotMatch(piped.stdout, /#owner=/);
  assert.match((await line('status')).stdout, /\ndashboard: http:\S+; no account yet: svc user link\n/);
  await line('stop');
  const words = `server start --detach --path ${folder} --run-as 64555:64555 --port 0 ${NO_ENGINE.join(' ')}`;
  const typed = await runProgram('script', ['-qec', `${SVC} ${words}`, '/dev/null'], {});
  const [, url = '', shown = ''] = /(http:\S+)\/sign-up#owner=([\w-]{43})\r\n/.exec(typed.stdout) ?? [];
  const link = (...words: readonly string[]) => runCli(['user', 'link', ...words], { SVC_HOME: folder });
  const token = /#owner=([\w-]{43})\n$/.exec((await link()).stdout)?.[1] ?? '';
  const signUp = async (secret: string) => {
    const body = JSON.stringify({ email: 'ann@example.com', password: 'correct horse', token: secret });
    const headers = { 'content-type': 'application/json', 'x-svc-page': '1' };
    return (await fetch(`${url}/v1/sign-up`, { method: 'POST', headers, body })).status;
  };
  assert.equal(await signUp(shown), 403, 'the later one made it void');
  assert.equal(await signUp(token), 200);
  assert.equal(await signUp(token), 403);
  const [address, wrong] = [
    await link('ben@example.com', '--url', 'https://svc.example.com/'),
    await link('ben@example.com', '--url', 'svc.example.com'),
  ];
  assert.match(address.stderr, /in a browser: https:\/\/svc\.example\.com\/sign-in#link=[\w-]{43}\n/);
  assert.deepEqual([wrong.code, /--url: 'svc\.example\.com' is no address/.test(wrong.stderr)], [2, true]);
  const refused = await link();
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /There are people on this server already/);
  const logs = await readFile(join(folder, 'server.log'), 'utf8');
  assert.ok(!logs.includes(shown) && !logs.includes(token) && shown.length === 43);
});

test('an engine that cannot start ends the start with its reason', async (t) => {
  const { line, start } = await serverLine(t);
  const { code, stderr } = await start('--bind-root', 'not/absolute');
  assert.equal(code, EXIT.usage);
  assert.match(stderr, /the engine does not start: --bind-root must be an absolute path, not not\/absolute/);
  assert.equal((await line('status')).code, 3);
});
