import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, readdir, readFile, readlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { HostCallError } from './host-calls.ts';
import type { HostCalls, LaunchRequest } from './host-calls.ts';
import { BUILT_SVC_HOST } from './svc-host-calls.ts';
import { makeTestHost } from '../testing/test-host.ts';

const ENVIRONMENT = { PATH: '/usr/bin:/bin' };

const failsWith = (errno: string) => (error: unknown) =>
  error instanceof HostCallError && error.errno === errno;

function launch(calls: HostCalls, command: readonly string[], rest: Partial<LaunchRequest> = {}) {
  const request = { command, environment: ENVIRONMENT, streams: 'null', ...rest } as const;
  return calls.launch(request, AbortSignal.timeout(100_000));
}

/** Writes its process id to a file, then waits for the end of the test. */
function sleeper(pidFile: string): readonly string[] {
  return ['sh', '-c', 'echo $$ >"$1.new" && mv "$1.new" "$1" && exec sleep 60', 'sh', pidFile];
}

async function pidIn(file: string): Promise<number> {
  await waitUntil(() => existsSync(file), `${file} is written`);
  return Number(readFileSync(file, 'utf8'));
}

function isRunning(pid: number): boolean {
  // A corpse has no command line.
  return commandLine(String(pid)) !== '';
}

test('a launch resolves with the exit code, or 128 and the signal', async () => {
  await using host = await makeTestHost();
  assert.equal(await launch(host.calls, ['true']), 0);
  assert.equal(await launch(host.calls, ['sh', '-c', 'exit 77']), 77);
  assert.equal(await launch(host.calls, ['sh', '-c', 'kill -TERM $$']), 128 + 15);
});

test('a covered folder is empty for the program, and unchanged for other processes', async () => {
  await using host = await makeTestHost();
  const [folder, seen] = [join(host.folder, 'covered'), join(host.folder, 'seen')];
  await mkdir(folder);
  await writeFile(join(folder, 'file'), 'there');
  const look = ['sh', '-c', 'ls "$1" >"$2"; touch "$1/new"', 'sh', folder, seen];
  assert.equal(await launch(host.calls, look, { cover: folder }), 0);
  assert.equal(await readFile(seen, 'utf8'), '');
  assert.deepEqual(await readdir(folder), ['file']);
  assert.equal(await launch(host.calls, ['sh', '-c', 'ls "$1" >"$2"', 'sh', folder, seen]), 0);
  assert.equal(await readFile(seen, 'utf8'), 'file\n');
  await assert.rejects(
    launch(host.calls, ['true'], { cover: join(host.folder, 'missing') }),
    failsWith('ENOENT'),
  );
  await assert.rejects(launch(host.calls, ['true'], { cover: 'relative' }), failsWith('EINVAL'));
});

test('a program that is missing or cannot be executed is reported as such', async () => {
  await using host = await makeTestHost();
  const text = join(host.folder, 'text');
  await writeFile(text, 'no program', { mode: 0o755 });
  await assert.rejects(launch(host.calls, ['nosuchprogram']), failsWith('ENOENT'));
  await assert.rejects(launch(host.calls, ['/nonexistent/program']), failsWith('ENOENT'));
  await assert.rejects(launch(host.calls, ['']), failsWith('ENOENT'));
  await assert.rejects(launch(host.calls, ['true'], { environment: {} }), failsWith('ENOENT'));
  await assert.rejects(launch(host.calls, [host.folder]), failsWith('EACCES'));
  await assert.rejects(launch(host.calls, [text]), failsWith('ENOEXEC'));
});

test('a launched program sees exactly the environment and the arguments it is given', async () => {
  await using host = await makeTestHost();
  const pidFile = join(host.folder, 'pid');
  const environment = { ...ENVIRONMENT, EMPTY: '', ODD: 'a\tb\n%41=\u2603' };
  using ended = ending();
  const request = { command: sleeper(pidFile), environment, streams: 'null' } as const;
  ended.settles(host.calls.launch(request, ended.signal).catch(() => undefined));
  const pid = await pidIn(pidFile);
  await waitUntil(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8') === 'sleep\x0060\0', 'sleep runs');
  const seen = (await readFile(`/proc/${pid}/environ`, 'utf8')).split('\0').slice(0, -1);
  // The shell before it sets PWD.
  const expected = ['PATH=/usr/bin:/bin', 'EMPTY=', 'ODD=a\tb\n%41=\u2603', 'PWD=/'];
  assert.deepEqual(seen.toSorted(), expected.toSorted());
  ended.abort();
  await ended.settled();
});

test('a launched program inherits no descriptors of its helper besides its streams', async () => {
  await using host = await makeTestHost();
  const leaky = join(host.folder, 'leaky');
  await writeFile(leaky, `#!/bin/sh\nexec 7</etc/hostname ${BUILT_SVC_HOST}\n`, { mode: 0o755 });
  const calls = host.withBinary(leaky);
  using ended = ending();
  for (const streams of ['null', 'closed'] as const) {
    const pidFile = join(host.folder, streams);
    const request = { command: sleeper(pidFile), environment: ENVIRONMENT, streams };
    ended.settles(calls.launch(request, ended.signal).catch(() => undefined));
    const pid = await pidIn(pidFile);
    // While a program is loaded it has its libraries open.
    const opened = () => readdirSync(`/proc/${pid}/fd`).sort().join();
    await waitUntil(() => opened() === '0,1,2', `nothing else is open, ${streams}`);
    for (const stream of ['0', '1', '2']) {
      const target = await readlink(`/proc/${pid}/fd/${stream}`);
      assert.match(target, streams === 'null' ? /^\/dev\/null$/ : /^socket:/);
    }
    assert.equal(await readlink(`/proc/${pid}/cwd`), '/');
  }
  for (const pid of calls.pids) assert.ok(existsSync(`/proc/${pid}/fd/7`), 'the helper leaks nothing');
  ended.abort();
  await ended.settled();
});

test('a launched program has our limits and umask, no signal blocked or ignored, and its own session', async () => {
  await using host = await makeTestHost();
  const at = (name: string) => join(host.folder, name);
  const script =
    'cd "$1" && cat /proc/self/limits >limits && cat /proc/self/status >status && ps -o sid= $$ >sid; echo $$ >pid';
  assert.equal(await launch(host.calls, ['sh', '-c', script, 'sh', host.folder]), 0);
  const own = await readFile('/proc/self/status', 'utf8');
  const status = await readFile(at('status'), 'utf8');
  const field = (name: string, text: string) => new RegExp(`^${name}:[ \\t]*(.*)$`, 'm').exec(text)?.[1];
  for (const name of ['Umask', 'CapEff', 'CapBnd', 'Uid', 'Gid', 'Groups', 'NoNewPrivs']) {
    assert.equal(field(name, status), field(name, own), name);
  }
  for (const name of ['SigBlk', 'SigIgn']) assert.match(field(name, status) ?? '', /^0+$/, name);
  assert.equal(await readFile(at('limits'), 'utf8'), await readFile('/proc/self/limits', 'utf8'));
  assert.equal(Number(await readFile(at('sid'), 'utf8')), Number(await readFile(at('pid'), 'utf8')));
});

test('closed streams end with the program, also for processes that inherited them', async () => {
  await using host = await makeTestHost();
  const mark = join(host.folder, 'mark');
  const script = 'exec 3<&0; (cat <&3; echo ended >"$1") & exit 0';
  assert.equal(await launch(host.calls, ['sh', '-c', script, 'sh', mark], { streams: 'closed' }), 0);
  await waitUntil(() => existsSync(mark), 'stdin has ended');
});

test('programs that run hold up neither each other nor other calls', async () => {
  await using host = await makeTestHost();
  using ended = ending();
  const files = Array.from({ length: 10 }, (_, index) => join(host.folder, `pid${index}`));
  for (const file of files) {
    const request = { command: sleeper(file), environment: ENVIRONMENT, streams: 'null' } as const;
    ended.settles(host.calls.launch(request, ended.signal).catch(() => undefined));
  }
  await Promise.all(files.map(pidIn));
  for (let times = 0; times < 20; times++) await host.calls.deleteLink('nowhere');
  await host.calls.unmount(host.folder);
  assert.equal(await launch(host.calls, ['true']), 0);
  ended.abort();
  await ended.settled();
});

test('an aborted launch rejects with the reason, and its process group is gone by then', async () => {
  await using host = await makeTestHost();
  const pidFile = join(host.folder, 'pid');
  const abort = new AbortController();
  const script = 'sleep 60 & echo $! >"$1.new" && mv "$1.new" "$1" && wait';
  const command = ['sh', '-c', script, 'sh', pidFile];
  const launched = host.calls.launch({ command, environment: ENVIRONMENT, streams: 'null' }, abort.signal);
  const rejected = assert.rejects(launched, /changed my mind/);
  const pid = await pidIn(pidFile);
  abort.abort(new Error('changed my mind'));
  await rejected;
  await waitUntil(() => !isRunning(pid), 'its child is gone');
});

test('a launch that is aborted at once never leaves its program running', async () => {
  await using host = await makeTestHost();
  const seconds = String(100_000 + process.pid);
  for (let round = 0; round < 20; round++) {
    const abort = new AbortController();
    const request = { command: ['sleep', seconds], environment: ENVIRONMENT, streams: 'null' } as const;
    const rejected = assert.rejects(host.calls.launch(request, abort.signal), { name: 'AbortError' });
    if (round % 2 === 0) await host.calls.deleteLink('nowhere');
    abort.abort();
    await rejected;
    const processes = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
    assert.deepEqual(
      processes.filter((pid) => commandLine(pid) === `sleep\0${seconds}\0`),
      [],
    );
  }
  await assert.rejects(
    host.calls.launch({ command: ['true'], environment: {}, streams: 'null' }, AbortSignal.abort()),
    { name: 'AbortError' },
  );
});

test('a helper that is killed fails the launch; the program lives on', async () => {
  await using host = await makeTestHost();
  const pidFile = join(host.folder, 'pid');
  const rejected = assert.rejects(launch(host.calls, sleeper(pidFile)), failsWith('ECHILD'));
  const pid = await pidIn(pidFile);
  for (const helper of host.calls.pids) process.kill(helper, 'SIGKILL');
  await rejected;
  assert.ok(isRunning(pid));
  process.kill(pid, 'SIGKILL');
  assert.equal(await launch(host.calls, ['true']), 0);
});

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

/** Ends what a test launched, also when the test fails. */
function ending() {
  const controller = new AbortController();
  const outcomes: Promise<unknown>[] = [];
  return {
    signal: controller.signal,
    abort: () => controller.abort(),
    settles: (outcome: Promise<unknown>) => void outcomes.push(outcome),
    settled: () => Promise.all(outcomes),
    [Symbol.dispose]: () => controller.abort(),
  };
}
