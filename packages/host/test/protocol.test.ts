import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtempDisposable, readdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const BINARY = fileURLToPath(new URL('../build/svc-host', import.meta.url));

/** Feeds `input` to svc-host, ends its stdin and returns its answers. */
async function converse(input: string | Uint8Array): Promise<readonly string[]> {
  const child = spawn(BINARY, { stdio: ['pipe', 'pipe', 'inherit'], env: {} });
  const closed = once(child, 'close');
  child.stdin.end(input);
  const answers = await text(child.stdout);
  assert.deepEqual(await closed, [0, null]);
  return answers.split('\n').slice(0, -1);
}

test('requests are answered one by one, in order, and the helper ends with its stdin', async () => {
  const answers = await converse('1\tdeleteLink\tnowhere\n2\tdeleteLink\tno%77here\n3\tnonsense\n');
  assert.deepEqual(answers, ['1\tok\t', '2\tok\t', '3\terr\tENOSYS\tthere is no such call']);
});

test('an unfinished last line is not carried out', async () => {
  assert.deepEqual(await converse('1\tdeleteLink\tnowhere\n2\tdeleteLink\tnowhe'), ['1\tok\t']);
});

test('malformed lines are refused one by one and the next request is answered', async () => {
  const malformed = {
    '': '0\terr\tEINVAL',
    unmount: '0\terr\tEINVAL',
    'x1\tunmount\t/nowhere': '0\terr\tEINVAL',
    '-1\tunmount\t/nowhere': '0\terr\tEINVAL',
    '99999999999999999999\tunmount\t/nowhere': '0\terr\tEINVAL',
    '5': '5\terr\tEINVAL',
    '5\t': '5\terr\tENOSYS',
    '5\tdeleteLink': '5\terr\tEINVAL',
    '5\tcopySparse\t/x\t/a\t/b': '5\terr\tEINVAL',
    '5\tcopySparse\t/x\t%': '5\terr\tEINVAL',
    '5\tcopySparse\t/x\t/%4': '5\terr\tEINVAL',
    '5\tcopySparse\t/x\t/%GG': '5\terr\tEINVAL',
    '5\tcopySparse\t/x\t/a%00b': '5\terr\tEINVAL',
    '5\tcopySparse\t/x\t\0': '5\terr\tEINVAL',
    [`5\tcopySparse${'\t/a'.repeat(601)}`]: '5\terr\tE2BIG',
    [`5\tcopySparse\t/${'a'.repeat(300_000)}`]: '0\terr\tE2BIG',
  };
  for (const [line, refusal] of Object.entries(malformed)) {
    const [answer = '', after] = await converse(`${line}\n7\tdeleteLink\tnowhere\n`);
    assert.ok(
      answer.startsWith(`${refusal}\t`),
      `${JSON.stringify(line.slice(0, 60))} was answered ${answer}`,
    );
    assert.equal(after, '7\tok\t');
  }
});

test('arguments of its own that it does not know are refused', async () => {
  const child = spawn(BINARY, ['--unknown'], { stdio: 'ignore' });
  assert.deepEqual(await once(child, 'exit'), [2, null]);
});

test('an unmount is answered too, even when stdin has ended before it is done', async () => {
  assert.deepEqual(await converse('1\tunmount\t/nowhere\n'), ['1\tok\t']);
});

test('a path is absolute and has no empty, . or .. part', async () => {
  assert.deepEqual(await converse('2\tunmount\trelative\n'), ['2\terr\tEINVAL\ta path is not absolute']);
  for (const path of ['/a/../b', '/a/.', '/a//b', '/a/'])
    assert.deepEqual(await converse(`2\tunmount\t${path}\n`), [
      '2\terr\tEINVAL\ta path has an empty, . or .. part',
    ]);
});

test('a mount point is removed with as many folders as were said, while they are empty', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'svc-host-unmount-'));
  const path = join(folder.path, 'one', 'two', 'three');
  await mkdir(path, { recursive: true });
  // One after the other: unmounts are answered as they are done.
  for (const id of ['1', '2'])
    assert.deepEqual(await converse(`${id}\tunmount\t${path}\t2\n`), [`${id}\tok\t`]);
  assert.deepEqual(await readdir(folder.path, { recursive: true }), ['one']);
  await writeFile(join(folder.path, 'one', 'file'), '');
  assert.match((await converse(`3\tunmount\t${folder.path}/one\t1\n`))[0] ?? '', /^3\terr\tENOTEMPTY\t/);
  for (const count of ['3', '-1', 'x', ''])
    assert.match((await converse(`4\tunmount\t${path}\t${count}\n`))[0] ?? '', /^4\terr\t(EINVAL|ERANGE)\t/);
  assert.deepEqual(await converse('5\tunmount\t/svc-nowhere\t2\n'), ['5\tok\t']);
});

test('a launch is answered when the program has ended, even when stdin has ended before', async () => {
  assert.deepEqual(await converse('1\tlaunch\t7\tnull\t\t\t0\t/bin/sh\t-c\tsleep .1; exit 3\n'), [
    '1\tok\t3',
  ]);
  const answers = await converse(
    '1\tlaunch\t7\tnull\t\t\t0\t/bin/sleep\t60\n2\tlaunch\t8\tnull\t\t\t0\t/bin/true\n3\tendLaunch\t7\n',
  );
  assert.deepEqual(answers.filter((answer) => !answer.startsWith('1')).sort(), ['2\tok\t0', '3\tok\t']);
  // It depends on the moment whether the program had begun.
  assert.match(answers.find((answer) => answer.startsWith('1')) ?? '', /\t(ok\t137|err\tECANCELED\t.*)$/);
});

test('a launch without a program, or with invalid streams, cover or claim, is refused', async () => {
  for (const fields of [
    '7\tnull\t\t\t0',
    '7\tnull\t\t\t1\tA=b',
    '7\topen\t\t\t0\t/bin/true',
    '7\tnull\t\t\tx\t/bin/true',
    '7\tnull\trelative\t\t0\t/bin/true',
    '7\tnull\t\trelative\t0\t/bin/true',
  ]) {
    const [answer = ''] = await converse(`5\tlaunch\t${fields}\n`);
    assert.match(answer, /^5\terr\t(EINVAL|ERANGE)\t/, fields);
  }
});

test('precision is a number of nanoseconds, a flag and process ids', async () => {
  for (const fields of [
    '',
    '1',
    '1\t0',
    '0\t0\t1',
    'x\t0\t1',
    '4294967296\t0\t1',
    '1\t2\t1',
    '1\t0\t0',
    '1\t0\tx',
  ]) {
    const [answer = ''] = await converse(`5\tsetPrecision\t${fields}\n`);
    assert.match(answer, /^5\terr\t(EINVAL|ERANGE)\t/, fields);
  }
  assert.deepEqual(await converse('5\tsetPrecision\t50000\t1\t2147483647\n'), ['5\tok\t']);
});

test('nothing is launched for a client that is gone', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'svc-host-launch-'));
  const mark = join(folder.path, 'mark');
  const child = spawn(BINARY, { stdio: ['pipe', 'pipe', 'inherit'], env: {} });
  const exited = once(child, 'exit');
  // It may notice the closed pipe before it has read anything.
  child.stdin.on('error', () => undefined);
  child.stdout.destroy();
  await once(child.stdout, 'close');
  child.stdin.end(`1\tlaunch\t7\tnull\t\t\t0\t/bin/touch\t${mark}\n`);
  assert.deepEqual(await exited, [0, null]);
  assert.ok(!existsSync(mark));
});

test('a folder is claimed while it is locked, and nothing is launched for a client that went before the launch had its claim', async (t) => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'svc-host-claim-'));
  const mark = join(folder.path, 'mark');
  assert.deepEqual(await converse(`1\tfindClaim\t${folder.path}\n`), ['1\tok\t0']);
  const [absent = ''] = await converse(
    `1\tfindClaim\t${mark}\n2\tlaunch\t7\tnull\t\t${mark}\t0\t/bin/true\n`,
  );
  assert.match(absent, /^1\terr\tENOENT\t/);

  const holder = spawn('flock', [folder.path, 'sh', '-c', 'echo held; read line'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.after(() => holder.kill('SIGKILL'));
  const released = once(holder, 'close');
  await once(holder.stdout, 'data');
  assert.deepEqual(await converse(`1\tfindClaim\t${folder.path}\n`), ['1\tok\t1']);
  const child = spawn(BINARY, { stdio: ['pipe', 'pipe', 'inherit'], env: {} });
  t.after(() => child.kill('SIGKILL'));
  const exited = once(child, 'exit');
  child.stdin.write(`1\tlaunch\t7\tnull\t\t${folder.path}\t0\t/bin/touch\t${mark}\n2\tendLaunch\tnone\n`);
  // Answered in order: the launch has begun, and waits.
  assert.equal(String((await once(child.stdout, 'data'))[0]), '2\tok\t\n');
  child.stdout.destroy();
  await once(child.stdout, 'close');
  holder.stdin.end();
  await released;
  child.stdin.end();
  assert.deepEqual(await exited, [0, null]);
  assert.ok(!existsSync(mark));
});
