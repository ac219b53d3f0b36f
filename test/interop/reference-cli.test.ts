import assert from 'node:assert/strict';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { BUSYBOX } from '../engine/start-engine.ts';
import { isLacking, ReferenceClient, type Ended } from './reference-client.ts';

let client: ReferenceClient;
before(async () => {
  client = await ReferenceClient.start();
  await done(
    client.msb(['create', '--name', 'box', BUSYBOX, '--label', 'team=ml', '-e', 'A=1', '-w', '/tmp']),
  );
});
after(() => client.destroy());

/** What a command that must succeed has printed. */
async function done(running: Promise<Ended>): Promise<string> {
  const { code, stdout, stderr } = await running;
  assert.equal(code, 0, stderr);
  return stdout;
}

async function failure(running: Promise<Ended>): Promise<string> {
  const { code, stderr } = await running;
  assert.notEqual(code, 0);
  return stderr;
}

const names = (table: string) =>
  table
    .split('\n')
    .slice(1)
    .map((line) => line.split(/\s+/)[0] ?? '')
    .filter((name) => name !== '');

test('ls shows all pages, and those with a label', async () => {
  const { MSB_API_KEY: key = '', MSB_API_URL: url = '' } = client.env;
  const made = Array.from({ length: 101 }, (_, index) => `many-${index}`);
  for (const name of made) {
    const response = await fetch(`${url}/v1/sandboxes`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name, image: { type: 'oci', reference: BUSYBOX }, labels: { kind: 'many' } }),
    });
    assert.equal(response.status, 200, await response.text());
  }
  assert.deepEqual(names(await done(client.msb(['ls']))).toSorted(), ['box', ...made].toSorted());
  assert.deepEqual(names(await done(client.msb(['ls', '--label', 'team=ml']))), ['box']);
  assert.deepEqual(names(await done(client.msb(['ls', '--label', 'team=other']))), []);
  assert.match(await done(client.msb(['ps', 'box'])), /box .* running/);
});

test('inspect shows what the sandbox was made of', async () => {
  const { config, status } = JSON.parse(await done(client.msb(['inspect', 'box', '--format', 'json'])));
  assert.equal(status, 'Running');
  assert.deepEqual(config.env, [{ key: 'A', value: '1' }]);
  assert.equal(config.runtime.workdir, '/tmp');
});

test('exec passes output, errors, environment, folder and exit code', async () => {
  const script = 'echo out; echo err >&2; echo $A $B; pwd; exit 7';
  const { code, stdout, stderr } = await client.msb(['exec', '-e', 'B=2', 'box', '--', 'sh', '-c', script]);
  assert.deepEqual({ code, stdout, stderr }, { code: 7, stdout: 'out\n1 2\n/tmp\n', stderr: 'err\n' });
});

test('exec passes stdin and its end', async () => {
  const input = 'line\n'.repeat(50_000);
  assert.equal(await done(client.msb(['exec', 'box', '--', 'cat'], { input })), input);
});

test('a missing program is 127, death by a signal 255, a timeout an error', async () => {
  const missing = await client.msb(['exec', 'box', '--', 'no-such-program']);
  assert.equal(missing.code, 127);
  assert.match(missing.stderr, /not found/);
  assert.equal((await client.msb(['exec', 'box', '--', 'sh', '-c', 'kill -9 $$'])).code, 255);
  assert.match(
    await failure(client.msb(['exec', '--timeout', '1s', 'box', '--', 'sleep', '30'])),
    /timed out after 1s/,
  );
});

test('exec on a terminal has its size, mixes both streams and takes Ctrl-C', async () => {
  const script = 'stty size; echo err >&2; trap "echo caught; exit 9" INT; echo ready; sleep 20 & wait';
  const command = ['exec', '-t', 'box', '--', 'sh', '-c', script];
  const { code, stdout } = await client.msbAtTerminal(command, { after: 'ready', text: '\u0003' });
  assert.match(stdout, /33 99/);
  assert.match(stdout, /err/);
  assert.match(stdout, /caught/);
  assert.equal(code, 9);
});

test('cp brings a tree there and back, with modes', async () => {
  const tree = join(client.folder, 'tree');
  const content = randomBytes(5_000_000);
  await mkdir(join(tree, 'sub'), { recursive: true });
  await writeFile(join(tree, 'sub/big'), content);
  await writeFile(join(tree, 'run.sh'), '#!/bin/sh\necho ran\n', { mode: 0o750 });
  await done(client.msb(['cp', tree, 'box:/tmp/tree']));
  assert.equal(await done(client.msb(['exec', 'box', '--', '/tmp/tree/run.sh'])), 'ran\n');
  const back = join(client.folder, 'back');
  await done(client.msb(['cp', 'box:/tmp/tree', back]));
  assert.ok((await readFile(join(back, 'sub/big'))).equals(content));
  assert.equal((await stat(join(back, 'run.sh'))).mode & 0o777, 0o750);
  await done(client.msb(['cp', 'box:/tmp/tree/run.sh', 'box:/tmp/copied']));
  assert.match(await done(client.msb(['exec', 'box', '--', 'cat', '/tmp/copied'])), /echo ran/);
});

test('logs -f shows what the main process writes, from its beginning to the end of the run', async () => {
  const script = 'for i in 1 2 3; do echo out $i; echo err $i >&2; sleep 0.3; done';
  await done(client.msb(['run', '-d', '--name', 'talker', BUSYBOX, '--', 'sh', '-c', script]));
  if (isLacking('logs')) {
    // It looks for them on this machine.
    assert.match(await failure(client.msb(['logs', 'talker'])), /no logs directory/);
    return;
  }
  const text = await done(client.msb(['logs', '-f', 'talker']));
  for (const line of ['out 1', 'out 2', 'out 3', 'err 1', 'err 2', 'err 3'])
    assert.ok(text.includes(line), text);
  const system = await done(client.msb(['logs', '-f', '--source', 'system', '--json', 'talker']));
  const entries = system
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.ok(entries.length > 1 && entries.every(({ s }) => s === 'system'), system);
});

test('stop, exec that starts it again, and restart keep the disk', async () => {
  await done(client.msb(['exec', 'box', '--', 'sh', '-c', 'echo kept > /root-file']));
  await done(client.msb(['stop', 'box']));
  assert.match(await done(client.msb(['ps', 'box'])), /stopped/);
  assert.equal(await done(client.msb(['exec', 'box', '--', 'cat', '/root-file'])), 'kept\n');
  await done(client.msb(['restart', 'box']));
  assert.equal(await done(client.msb(['exec', 'box', '--', 'cat', '/root-file'])), 'kept\n');
  await done(client.msb(['stop', 'box']));
  await done(client.msb(['start', 'box']));
  assert.match(await done(client.msb(['ps', 'box'])), /running/);
});

test('ssh runs a command as root and passes its exit code', async () => {
  const { code, stdout } = await client.msb(['ssh', 'box', '--', 'id -u; exit 4']);
  assert.deepEqual([code, stdout], [4, '0\n']);
});

test('volumes are made, listed and removed', async () => {
  await done(client.msb(['volume', 'create', 'data']));
  assert.ok(names(await done(client.msb(['volume', 'ls']))).includes('data'));
  await done(client.msb(['volume', 'rm', 'data']));
  assert.ok(!names(await done(client.msb(['volume', 'ls']))).includes('data'));
});

test('run without a name leaves nothing, also when the command fails', async () => {
  const { code, stdout } = await client.msb(['run', BUSYBOX, '--', 'sh', '-c', 'echo once; exit 3']);
  assert.deepEqual([code, stdout], [3, 'once\n']);
  await waitUntil(async () => !(await done(client.msb(['ls']))).includes('msb-'), {
    what: 'the sandbox is gone',
  });
});

test('errors have the words that the client knows', async () => {
  assert.match(await failure(client.msb(['create', '--name', 'box', BUSYBOX])), /sandbox already exists/);
  assert.match(await failure(client.msb(['exec', 'missing', '--', 'true'])), /sandbox not found/);
  assert.match(await failure(client.msb(['rm', 'missing'])), /sandbox not found/);
  assert.match(await failure(client.msb(['volume', 'rm', 'nothing'])), /volume not found/);
  const missing = ['create', '--name', 'bad', '--pull', 'never', 'no-such-image:1'];
  assert.match(await failure(client.msb(missing)), /bad/);
  const other = await client.ofOrganization('elsewhere');
  assert.match(await failure(other.msb(['exec', 'box', '--', 'true'])), /sandbox not found/);
});

test('rm removes a running sandbox', async () => {
  await done(client.msb(['create', '--name', 'gone', BUSYBOX]));
  await done(client.msb(['rm', '--force', 'gone']));
  assert.match(await failure(client.msb(['ps', 'gone'])), /not found/);
});
