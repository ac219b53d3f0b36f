import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { CommandLine } from './command-line.ts';

let svc: CommandLine;
before(async () => {
  svc = await CommandLine.withEngine();
});
after(() => svc.close());

test('run passes output, errors and the exit code of the command on, and leaves no sandbox', async () => {
  const { code, stdout, stderr } = await svc.run([
    'run',
    'tools',
    '--',
    'sh',
    '-c',
    'echo out; echo err >&2; exit 7',
  ]);
  assert.deepEqual({ code, stdout, stderr }, { code: 7, stdout: 'out\n', stderr: 'err\n' });
  assert.deepEqual(JSON.parse(await svc.succeed(['ls', '-o', 'json'])), []);
});

test('a command that is not there exits with 127, one killed by a signal with 128 and its number', async () => {
  const missing = await svc.run(['run', 'tools', '--', 'nonsense']);
  assert.equal(missing.code, 127);
  assert.match(missing.stderr, /nonsense/);
  assert.equal((await svc.run(['run', 'tools', '--', 'sh', '-c', 'kill -TERM $$'])).code, 143);
});

test('a command that needs more memory than the sandbox has is reported as such', async () => {
  const eat = 'x=0123456789abcdef; while true; do x=$x$x; done';
  const { code, stderr } = await svc.run(['run', '-m', '32M', 'tools', '--', 'sh', '-c', eat]);
  assert.equal(code, 137);
  assert.match(stderr, /more memory/);
});

test('stdin, environment, folder and user reach the command', async () => {
  const script = 'cat; echo $A $B; pwd; id -u';
  const words = [
    'run',
    '-e',
    'A=1',
    '-e',
    'B=x=y',
    '-w',
    '/bin',
    '-u',
    '1000:1000',
    'tools',
    '--',
    'sh',
    '-c',
    script,
  ];
  assert.equal(await svc.succeed(words, 'input\n'), 'input\n1 x=y\n/bin\n1000\n');
});

test('a megabyte through stdin and stdout arrives whole', async () => {
  const input = '0123456789abcdef'.repeat(65_536);
  assert.equal(await svc.succeed(['run', 'tools', '--', 'cat'], input), input);
});

test('a command that runs too long is killed and exits with 124', async () => {
  const { code, stderr } = await svc.run(['run', '--timeout', '1', 'tools', '--', 'sleep', '60']);
  assert.equal(code, 124);
  assert.match(stderr, /longer than 1 s/);
});

test('an interrupt reaches the command, and its sandbox is removed', async () => {
  const program = resolve(import.meta.dirname, '../../../svc');
  const script = 'trap "echo caught; exit 9" INT; echo ready; while true; do sleep 0.1; done';
  const child = spawn(program, ['--path', svc.folder, 'run', 'tools', '--', 'sh', '-c', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 60_000,
  });
  let output = '';
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
    if (output === '' && chunk.includes('ready')) child.kill('SIGINT');
    output += chunk.toString();
  }
  if (child.exitCode === null) await once(child, 'exit');
  assert.equal(output, 'ready\ncaught\n');
  assert.equal(child.exitCode, 9);
  assert.equal(await svc.succeed(['ls', '-q']), '');
});

test('a named sandbox stays, keeps its files over a stop, and goes when it is removed', async () => {
  await svc.succeed(['run', '--name', 'web', 'tools', '--', 'sh', '-c', 'echo kept > /file']);
  assert.equal(await svc.succeed(['ls', '-q']), 'web\n');
  assert.equal(await svc.succeed(['exec', 'web', '--', 'cat', '/file']), 'kept\n');
  assert.match((await svc.run(['rm', 'web'])).stderr, /svc rm -f web/);
  await svc.succeed(['stop', '-t', '1', 'web']);
  assert.match(await svc.succeed(['ls']), /web +stopped +container/);
  await svc.succeed(['start', 'web']);
  assert.equal(await svc.succeed(['exec', 'web', '--', 'cat', '/file']), 'kept\n');
  await svc.succeed(['rm', '-f', 'web']);
  const gone = await svc.run(['inspect', 'web']);
  assert.equal(gone.code, 1);
  assert.match(gone.stderr, /no sandbox web/);
});

test('a command in the background has its output in the log, and the sandbox ends with it', async () => {
  const name = (
    await svc.succeed(['run', '-d', '--name', 'job', 'tools', '--', 'sh', '-c', 'echo one; echo two >&2'])
  ).trim();
  assert.equal(name, 'job');
  const { code, stdout, stderr } = await svc.run(['logs', '-f', 'job']);
  assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: 'one\n', stderr: 'two\n' });
  const [entry] = (await svc.succeed(['logs', '-o', 'json', '-s', 'stdout', 'job'])).split('\n');
  assert.equal((JSON.parse(entry ?? '') as { source: string }).source, 'stdout');
  await svc.succeed(['rm', '-f', 'job']);
});

test('a terminal is given to the command when asked for', async () => {
  await svc.succeed(['run', '--name', 'tty', 'tools', '--', 'true']);
  assert.match(await svc.succeed(['exec', '-t', 'tty', '--', 'tty']), /^\/dev\/pts\/\d+\r\n$/);
  await svc.succeed(['rm', '-f', 'tty']);
});

test('images can be listed, inspected and removed', async () => {
  assert.match(await svc.succeed(['image', 'ls']), /tools/);
  await svc.succeed(['image', 'import', `${svc.folder}/tools-rootfs`, 'other']);
  assert.match(await svc.succeed(['image', 'inspect', 'other']), /"architecture"/);
  await svc.succeed(['image', 'rm', 'other']);
  assert.equal((await svc.run(['image', 'inspect', 'other'])).code, 1);
});

test('sandboxes survive an engine that stops and starts again', async () => {
  await svc.succeed(['run', '--name', 'survivor', 'tools', '--', 'true']);
  assert.match(await svc.succeed(['engine', 'stop']), /run on/);
  assert.equal((await svc.run(['ls'])).code, 1);
  await svc.startEngine();
  assert.match(await svc.succeed(['engine', 'start', '--detach']), /runs already/);
  assert.equal(await svc.succeed(['exec', 'survivor', '--', 'echo', 'here']), 'here\n');
  assert.match(await svc.succeed(['engine', 'status']), /1 sandboxes/);
  await svc.succeed(['rm', '-f', 'survivor']);
});
