import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { Sandbox, SvcError } from '@svc/sdk';
import { BUSYBOX } from '../engine/start-engine.ts';
import { useRealServer } from './real-server.ts';

const MIB = 1024 * 1024;
const real = useRealServer();

test('a program runs to its end, with its output, its code and its input', async () => {
  const { sandbox } = real;
  const { code, reason } = await sandbox.exec('sh', ['-c', 'exit 7']);
  assert.deepEqual([code, reason], [7, 'exit']);
  const said = await sandbox.shell('echo out; echo err >&2');
  assert.deepEqual([said.text(), said.errorText(), said.isSuccess], ['out\n', 'err\n', true]);
  assert.equal((await sandbox.exec('cat', [], { stdin: 'in' })).text(), 'in');
  const killed = await sandbox.shell('kill -9 $$');
  assert.deepEqual([killed.code, killed.signal, killed.reason, killed.shellCode], [-1, 9, 'signal', 137]);
});

test('environment, folder and user are those of the call', async () => {
  const options = { env: { A: 'b' }, cwd: '/tmp', user: '1000:1000' };
  assert.equal((await real.sandbox.shell('echo $A $(pwd) $(id -u)', options)).text(), 'b /tmp 1000\n');
});

test('limits of a call hold for programs, terminals and detached processes', async () => {
  const { sandbox } = real;
  const rlimits = [{ resource: 'nofile' as const, soft: 77, hard: 88 }];
  const script = 'echo $(ulimit -Sn) $(ulimit -Hn)';
  assert.equal((await sandbox.shell(script, { rlimits })).text(), '77 88\n');
  await using terminal = await sandbox.pty.open({
    cols: 80,
    rows: 24,
    program: 'sh',
    args: ['-c', script],
    rlimits,
  });
  assert.match(await terminal.output.text(), /^77 88\r\n/);
  const detached = await sandbox.commands.startDetached('sh', ['-c', script], { rlimits });
  await detached.wait();
  const chunks: Uint8Array[] = [];
  for await (const piece of detached.output()) if (piece.kind === 'data') chunks.push(piece.data);
  assert.equal(Buffer.concat(chunks).toString(), '77 88\n');
});

test('a program that cannot be started says why', async () => {
  await assert.rejects(real.sandbox.exec('no-such-program'), (error) => {
    assert.ok(SvcError.is(error, 'exec_failed'));
    assert.equal(error.details?.['kind'], 'not_found');
    return true;
  });
});

test('a program that takes too long is killed with its processes', async () => {
  const { sandbox } = real;
  const script = 'echo $$ > /tmp/late; sleep 1000';
  // A busy machine may not get as far as the file in so little time.
  for (const timeoutMs of [2000, 8000, 30_000]) {
    const failure = await sandbox.shell(script, { timeoutMs }).catch((error: unknown) => error);
    assert.ok(SvcError.is(failure, 'exec_timeout'), String(failure));
    if (await sandbox.files.exists('/tmp/late')) break;
  }
  const pid = (await sandbox.files.readText('/tmp/late')).trim();
  assert.equal((await sandbox.exec('kill', ['-0', pid])).code, 1);
});

test('an abort ends the call at once and the process soon after', async () => {
  const { sandbox } = real;
  const controller = new AbortController();
  const call = sandbox.shell('echo $$ > /tmp/aborted; sleep 1000', { signal: controller.signal });
  const isThere = async () => (await sandbox.shell('test -s /tmp/aborted')).isSuccess;
  await waitUntil(isThere, { what: 'the process runs' });
  controller.abort(new Error('enough'));
  const failure = await call.catch((error: unknown) => error);
  assert.ok(SvcError.is(failure, 'aborted'), String(failure));
  assert.equal((failure.cause as Error).message, 'enough');
  const pid = (await sandbox.files.readText('/tmp/aborted')).trim();
  const isGone = async () => (await sandbox.exec('kill', ['-0', pid])).code === 1;
  await waitUntil(isGone, { what: 'the process is gone' });
});

test('output beyond the limit is cut and said to be', async () => {
  const result = await real.sandbox.shell('head -c 5000 /dev/zero', { maxOutputBytes: 1000 });
  assert.deepEqual([result.stdout.length, result.truncated], [1000, ['stdout']]);
});

test('64 MiB of output arrive as they were written', async () => {
  const { sandbox } = real;
  const script =
    'i=0; while [ $i -lt 64 ]; do dd if=/dev/zero bs=1M count=1 2>/dev/null | tr "\\0" "x"; echo $i; i=$((i+1)); done';
  await using command = await sandbox.commands.start('sh', ['-c', script], { stderr: 'ignore' });
  const hash = createHash('sha256');
  let length = 0;
  for await (const chunk of command.stdout) {
    hash.update(chunk);
    length += chunk.length;
  }
  const expected = createHash('sha256');
  for (let index = 0; index < 64; index++) expected.update('x'.repeat(MIB)).update(`${index}\n`);
  assert.equal((await command.wait()).code, 0);
  assert.ok(length > 64 * MIB);
  assert.equal(hash.digest('hex'), expected.digest('hex'));
});

test('a process waits for a reader who is slow, and other calls do not', async () => {
  const { sandbox } = real;
  const script = 'dd if=/dev/zero of=/dev/stdout bs=64k count=4096 2>/dev/null; echo done > /tmp/slow-done';
  await using command = await sandbox.commands.start('sh', ['-c', script], { stderr: 'ignore' });
  const reader = command.stdout[Symbol.asyncIterator]();
  await reader.next();
  for (let call = 0; call < 20; call++) assert.equal((await sandbox.exec('true')).code, 0);
  assert.equal(await sandbox.files.exists('/tmp/slow-done'), false);
  let bytes = 0;
  for (let next = await reader.next(); next.done !== true; next = await reader.next())
    bytes += next.value.length;
  assert.ok(bytes > 250 * MIB, `${bytes} bytes`);
  assert.equal((await command.wait()).code, 0);
});

test('a command is written to, reads its end, and is signalled', async () => {
  const { sandbox } = real;
  const cat = await sandbox.commands.start('cat');
  await cat.write('one\n');
  await cat.write(Buffer.from('two'));
  await cat.closeStdin();
  assert.deepEqual(await Array.fromAsync(cat.stdout.lines()), ['one', 'two']);
  assert.equal((await cat.wait()).code, 0);
  const sleeper = await sandbox.commands.start('sleep', ['1000']);
  assert.ok(sleeper.pid > 1);
  await sleeper.signal('SIGTERM');
  assert.deepEqual(await sleeper.wait(), { code: -1, signal: 15, reason: 'signal', shellCode: 143 });
  await assert.rejects(sleeper.signal(99), (error) => SvcError.is(error, 'invalid_request'));
});

test('a command ends with its block', async () => {
  const { sandbox } = real;
  let pid = 0;
  {
    await using command = await sandbox.commands.start('sleep', ['1000']);
    ({ pid } = command);
  }
  const isGone = async () => (await sandbox.exec('kill', ['-0', String(pid)])).code === 1;
  await waitUntil(isGone, { what: 'the process is gone' });
});

test('a hundred calls at once share one connection', async () => {
  const results = await Promise.all(
    Array.from({ length: 100 }, (_, index) => real.sandbox.shell(`echo ${index}`)),
  );
  assert.deepEqual(
    results.map((result) => result.text()),
    Array.from({ length: 100 }, (_, index) => `${index}\n`),
  );
});

test('a terminal has the size it was given, takes another, and takes Ctrl-C', async () => {
  await using terminal = await real.sandbox.pty.open({ cols: 90, rows: 30 });
  let screen = '';
  const reading = (async () => {
    for await (const text of terminal.output.texts()) screen += text;
  })();
  const shows = (text: string) =>
    waitUntil(() => screen.includes(text), { what: `the screen shows ${text}` });
  await terminal.write('stty size; echo $TERM\n');
  await shows('30 90');
  await shows('xterm-256color');
  await terminal.resize({ cols: 100, rows: 40 });
  await terminal.write('stty size\n');
  await shows('40 100');
  await terminal.write('sleep 1000 | (echo be\\gun; cat)\n');
  await shows('begun');
  await terminal.write('\u0003');
  await terminal.write('exit 5\n');
  assert.equal((await terminal.wait()).code, 5);
  await reading;
});

test('commands in a stopped sandbox fail with its state, and run again once it is started', async () => {
  const { client } = real;
  const sandbox = await Sandbox.create({ client, name: 'stopped', image: BUSYBOX });
  assert.equal((await sandbox.exec('true')).code, 0);
  await sandbox.stop();
  assert.equal(sandbox.status, 'stopped');
  const failure = await sandbox.exec('true').catch((error: unknown) => error);
  assert.ok(SvcError.is(failure, 'sandbox_not_running'), String(failure));
  assert.equal(failure.status, 409);
  assert.ok(failure.requestId);
  await sandbox.start();
  assert.equal((await sandbox.exec('true')).code, 0);
  await sandbox.remove();
  await assert.rejects(Sandbox.connect('stopped', { client }), (error) =>
    SvcError.is(error, 'sandbox_not_found'),
  );
});

test('a command line in the place of a program is detected, with what to call instead', async () => {
  const { sandbox } = real;
  const asked = [sandbox.exec('echo hi'), sandbox.commands.start('echo hi')];
  for (const refused of await Promise.allSettled(asked)) {
    assert.equal(refused.status, 'rejected');
    assert.ok(SvcError.is(refused.reason, 'exec_failed'));
    assert.match(refused.reason.message, /use shell\('echo hi'\), or exec\('echo', \['hi'\]\)$/);
  }
});

test('a run reports its output as it comes, whole characters at a time, and ends with its listener', async () => {
  const { sandbox } = real;
  const heard: string[] = [];
  const script = "printf '\\303'; sleep 0.1; printf '\\251\\n'; echo err >&2";
  const result = await sandbox.shell(script, {
    onStdout: (text) => heard.push(`out ${text}`),
    onStderr: (text) => heard.push(`err ${text}`),
  });
  assert.deepEqual(heard.toSorted(), ['err err\n', 'out é\n']);
  assert.equal(result.text(), 'é\n');
  const enough = new Error('enough');
  const noisy = sandbox.shell('echo $$ > /tmp/noisy; while true; do echo x; sleep 0.05; done', {
    onStdout: () => {
      throw enough;
    },
  });
  assert.equal(await noisy.catch((error: unknown) => error), enough);
  const pid = (await sandbox.files.readText('/tmp/noisy')).trim();
  await waitUntil(async () => !(await sandbox.exec('kill', ['-0', pid])).isSuccess, {
    what: 'it was killed',
  });
});
