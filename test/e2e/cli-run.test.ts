import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { BUSYBOX } from '../engine/start-engine.ts';
import { useCli } from './cli-line.ts';

const cli = useCli();
const MIB = 1024 * 1024;

async function names(): Promise<readonly string[]> {
  return (await cli.svc.succeed(['ps', '-aq'])).split('\n').filter((name) => name !== '');
}

test('run passes output, errors and the exit code of the command on, and leaves no sandbox', async () => {
  const script = 'echo out; echo err >&2; exit 7';
  const { code, stdout, stderr } = await cli.svc.run(['run', BUSYBOX, 'sh', '-c', script]);
  assert.deepEqual({ code, stdout, stderr }, { code: 7, stdout: 'out\n', stderr: 'err\n' });
  assert.deepEqual(await names(), []);
});

test('exit codes are those of a shell: 127 not found, 126 not startable, 128 and the signal; 125 is our own', async () => {
  await cli.svc.succeed(['run', '-d', '--name', 'codes', BUSYBOX]);
  const codeOf = async (...words: string[]) => await cli.svc.run(['exec', 'codes', ...words]);
  const missing = await codeOf('nonsense');
  assert.equal(missing.code, 127);
  assert.match(missing.stderr, /^error: nonsense: .*\n.*svc run -it/);
  assert.equal((await codeOf('/etc/passwd')).code, 126);
  assert.equal((await cli.svc.run(['exec', '-w', '/nowhere', 'codes', 'true'])).code, 126);
  assert.equal((await cli.svc.run(['exec', '-u', 'missing-user', 'codes', 'true'])).code, 126);
  assert.equal((await cli.svc.run(['exec', 'missing', 'true'])).code, 125);
  assert.equal((await cli.svc.run(['run', '--pull', 'never', 'none', 'true'])).code, 125);
  assert.equal((await codeOf('sh', '-c', 'kill -TERM $$')).code, 143);
  assert.equal((await codeOf('sh', '-c', 'kill -INT $$')).code, 130);
  assert.equal((await codeOf('sh', '-c', 'kill -KILL $$')).code, 137);
  assert.equal((await codeOf('sh', '-c', 'exit 42')).code, 42);
  await cli.svc.succeed(['rm', '-f', 'codes']);
});

test('words behind the image or the sandbox belong to the command, with or without --', async () => {
  assert.equal(await cli.svc.succeed(['run', BUSYBOX, 'echo', '-o', 'json', '--help']), '-o json --help\n');
  assert.equal(await cli.svc.succeed(['run', BUSYBOX, '--', 'echo', '--', '-it']), '-- -it\n');
});

test('a command that needs more memory than the sandbox has is reported as such', async () => {
  const eat = 'x=0123456789abcdef; while true; do x=$x$x; done';
  const { code, stderr } = await cli.svc.run(['run', '-m', '32M', BUSYBOX, 'sh', '-c', eat]);
  assert.equal(code, 137);
  assert.match(stderr, /more memory/);
});

test('stdin, environment, folder and user reach the command', async () => {
  const options = ['-e', 'A=1', '-e', 'B=x=y', '-w', '/bin', '-u', '1000:1000'];
  const command = ['sh', '-c', 'cat; echo $A $B; pwd; id -u'];
  const expected = 'input\n1 x=y\n/bin\n1000\n';
  assert.equal(await cli.svc.succeed(['run', ...options, BUSYBOX, ...command], 'input\n'), expected);
  await cli.svc.succeed(['run', '-d', '--name', 'given', BUSYBOX]);
  assert.equal(await cli.svc.succeed(['exec', ...options, 'given', ...command], 'input\n'), expected);
  await cli.svc.succeed(['rm', '-f', 'given']);
});

test('20 MiB of bytes through stdin and stdout arrive whole', async () => {
  const input = randomBytes(20 * MIB);
  const { code, bytes, stderr } = await cli.svc.run(['run', BUSYBOX, 'cat'], { input });
  assert.equal(code, 0, stderr);
  assert.ok(bytes.equals(input), `${bytes.length} bytes came back`);
});

test('a command that ends before it has read everything is no error', async () => {
  const { code, stdout } = await cli.svc.run(['run', BUSYBOX, 'head', '-c', '3'], {
    input: randomBytes(8 * MIB),
  });
  assert.deepEqual([code, stdout.length > 0], [0, true]);
});

test('a command that runs too long is killed and exits with 124', async () => {
  const { code, stderr } = await cli.svc.run(['run', '--timeout', '1', BUSYBOX, 'sleep', '60']);
  assert.equal(code, 124);
  assert.match(stderr, /longer than 1s/);
});

test('a sandbox is removed also when the reader closes its output early', async () => {
  const child = cli.svc.spawn(['run', BUSYBOX, 'yes']);
  const ended = once(child, 'exit');
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
    assert.ok(chunk.length > 0);
    // Closes the pipe.
    break;
  }
  assert.deepEqual(await ended, [0, null]);
  assert.deepEqual(await names(), []);
});

test('an interrupt reaches the command, and its sandbox is removed', async () => {
  const script = 'trap "echo caught; exit 9" INT; echo ready; while true; do sleep 0.1; done';
  const child = cli.svc.spawn(['run', BUSYBOX, 'sh', '-c', script]);
  const ended = once(child, 'exit');
  let output = '';
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
    output += chunk.toString();
    if (output === 'ready\n') child.kill('SIGINT');
  }
  assert.equal(output, 'ready\ncaught\n');
  assert.deepEqual(await ended, [9, null]);
  assert.deepEqual(await names(), []);
});

test('svc run ends at the third signal, also when the command ignores signals', async () => {
  const script = 'trap "echo heard" TERM; echo heard; while true; do sleep 0.1; done';
  const child = cli.svc.spawn(['run', BUSYBOX, 'sh', '-c', script]);
  const ended = once(child, 'exit');
  let heard = 0;
  // Each is sent when the one before it was heard: signals that wait are one.
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
    heard += chunk.toString().split('heard').length - 1;
    if (heard <= 3) child.kill('SIGTERM');
  }
  assert.deepEqual(await ended, [143, null]);
  assert.ok(heard >= 3, `heard ${heard} times`);
  assert.deepEqual(await names(), []);
});

test('without a command and without a terminal there is nothing to run', async () => {
  const { code, stderr } = await cli.svc.run(['run', BUSYBOX]);
  assert.equal(code, 2);
  assert.match(stderr, /try: svc run svc\/busybox COMMAND\n$/);
});

test('a named sandbox keeps its files over a stop, until it is removed', async () => {
  const { svc } = cli;
  await svc.succeed(['run', '--name', 'web', BUSYBOX, 'sh', '-c', 'echo kept > /file']);
  assert.deepEqual(await names(), ['web']);
  assert.equal(await svc.succeed(['exec', 'web', 'cat', '/file']), 'kept\n');
  assert.match((await svc.run(['rm', 'web'])).stderr, /try: svc rm -f web\n$/);
  await svc.succeed(['stop', 'web']);
  assert.equal(await svc.succeed(['ps', '-q']), '');
  assert.match(await svc.succeed(['ps', '--all']), /web +stopped +container +svc\/busybox/);
  const stopped = await svc.run(['exec', 'web', 'true']);
  assert.equal(stopped.code, 125);
  assert.match(stopped.stderr, /try: svc start web\n$/);
  await svc.succeed(['start', 'web']);
  await svc.succeed(['restart', 'web']);
  assert.equal(await svc.succeed(['exec', 'web', 'cat', '/file']), 'kept\n');
  const taken = await svc.run(['run', '--name', 'web', BUSYBOX, 'true']);
  assert.equal(taken.code, 125);
  assert.deepEqual(await names(), ['web'], 'a name that is taken costs its owner nothing');
  const some = await svc.run(['rm', '-f', 'missing', 'web']);
  assert.deepEqual([some.code, some.stdout], [1, 'web\n'], 'the others are removed all the same');
  assert.match(some.stderr, /'missing'\n {2}try: svc ps --all\n$/);
});

test('a run that is refused removes no sandbox that has the name already', async (t) => {
  const { svc } = cli;
  await svc.succeed(['run', '-d', '--name', 'theirs', BUSYBOX]);
  const taken = createServer().listen(0, '127.0.0.1');
  t.after(() => taken.close());
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  const refused = await svc.run(['run', '--rm', '--name', 'theirs', '-p', `${port}:80`, BUSYBOX, 'true']);
  assert.equal(refused.code, 125);
  assert.match(refused.stderr, new RegExp(String(port)));
  assert.equal(await svc.succeed(['exec', 'theirs', 'echo', 'here']), 'here\n');
  await svc.succeed(['rm', '-f', 'theirs']);
});

test('a sandbox that is created starts later, with the command that it was given', async () => {
  const { svc } = cli;
  const made = await svc.succeed(['create', '--name', 'later', BUSYBOX, 'sh', '-c', 'echo begun; sleep 60']);
  assert.equal(made, 'later\n');
  assert.match(await svc.succeed(['ps', '-a']), /later +created/);
  assert.equal(await svc.succeed(['stop', 'later']), 'later\n', 'one that does not run is fine');
  await svc.succeed(['start', 'later']);
  await waitUntil(async () => (await svc.succeed(['logs', 'later'])) === 'begun\n', {
    what: 'its command has run',
  });
  await svc.succeed(['rm', '-f', 'later']);
});

test('a command in the background has its output in the log, which ends with the sandbox', async () => {
  const { svc } = cli;
  const script = 'echo one; echo two >&2; sleep 1; echo three';
  const name = (await svc.succeed(['run', '-d', '--name', 'job', BUSYBOX, 'sh', '-c', script])).trim();
  assert.equal(name, 'job');
  const { code, stdout, stderr } = await svc.run(['logs', '-f', 'job']);
  assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: 'one\nthree\n', stderr: 'two\n' });
  assert.equal(await svc.succeed(['logs', '--tail', '1', '-s', 'stdout', 'job']), 'three\n');
  assert.equal(await svc.succeed(['logs', '--since', '1h', '-s', 'stdout', 'job']), 'one\nthree\n');
  const [entry] = (await svc.succeed(['logs', '-o', 'json', '-s', 'stdout', 'job'])).split('\n');
  const { source, text, ts } = JSON.parse(entry ?? '') as Record<'source' | 'text' | 'ts', string>;
  assert.deepEqual([source, text, Number.isNaN(Date.parse(ts))], ['stdout', 'one\n', false]);
  await svc.succeed(['rm', '-f', 'job']);
});

test('a terminal is given to the command when asked for, also without one of our own', async () => {
  assert.match(await cli.svc.succeed(['run', '-t', BUSYBOX, 'tty']), /^\/dev\/pts\/\d+\r\n$/);
});
