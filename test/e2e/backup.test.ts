import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { waitUntil } from '@svc/contract/testing';
import { BUSYBOX } from '../engine/start-engine.ts';
import { SupervisedServer } from './supervised-server.ts';

const SVC = resolve(import.meta.dirname, '../../svc');
const exec = promisify(execFile);
let server: SupervisedServer;
let key: string;
let scratch: string;
let archive: string;

before(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'svc-backup-'));
  archive = join(scratch, 'svc.backup');
  server = await SupervisedServer.prepare();
  await startWithKeys(server);
  await server.importBusybox();
  key = await succeed(server, ['server', 'keygen', '--quiet']);
  await succeed(server, ['volume', 'create', 'shelf']);
  const write = 'echo on-disk > /kept; echo in-volume > /shelf/kept; i=0';
  const count = 'while true; do i=$((i+1)); echo $i >> /count; sleep 0.02; done';
  const command = ['sh', '-c', `${write}; ${count}`];
  await succeed(server, ['run', '-d', '--name', 'web', '-v', 'shelf:/shelf', BUSYBOX, ...command]);
  await waitUntil(async () => (await lastCount(server)) > 2, { what: 'the sandbox writes' });
});
after(async () => {
  await server.clear();
  await rm(scratch, { recursive: true, force: true });
});

async function startWithKeys(started: SupervisedServer): Promise<void> {
  const words = ['--port', String(started.port), '--isolation', 'container'];
  await succeed(started, ['server', 'start', '--detach', ...words]);
  await started.untilHealthy();
}

/** As an operator types it, with the key where there is one. @returns what it printed */
async function succeed(on: SupervisedServer, words: readonly string[]): Promise<string> {
  const env = { PATH: process.env['PATH'], HOME: scratch, SVC_HOME: on.folder, SVC_API_KEY: key };
  const url = `http://127.0.0.1:${on.port}`;
  return (await exec(SVC, words, { env: { ...env, SVC_API_URL: url } })).stdout.trim();
}

async function lastCount(on: SupervisedServer): Promise<number> {
  return Number((await succeed(on, ['exec', 'web', 'tail', '-n', '1', '/count'])) || 0);
}

async function statusOf(on: SupervisedServer, name: string): Promise<string> {
  const { status } = JSON.parse(await succeed(on, ['inspect', name, '-o', 'json'])) as { status: string };
  return status;
}

function stageOf({ folder }: SupervisedServer): string {
  return `${folder}.restore.unfinished`;
}

async function refusal(on: SupervisedServer, ...words: readonly string[]): Promise<string> {
  const { code, text } = await on.svc(...words);
  assert.notEqual(code, 0, text);
  return text;
}

test('a backup of a server at work, restored elsewhere, has its keys, rows, disks, volumes and images', async (t) => {
  await succeed(server, ['backup', archive]);
  assert.equal((await stat(archive)).mode & 0o777, 0o600);
  const counted = await lastCount(server);
  await waitUntil(async () => (await lastCount(server)) > counted + 2, { what: 'the sandbox writes on' });
  assert.ok(!(await readdir(server.folder)).includes('backup.unfinished'));
  const other = await SupervisedServer.prepare();
  t.after(() => other.clear());
  await succeed(other, ['restore', archive]);
  await startWithKeys(other);
  await waitUntil(async () => (await statusOf(other, 'web')) !== 'running', {
    what: 'the row is brought up to date',
  });
  assert.equal(await statusOf(other, 'web'), 'stopped');
  await succeed(other, ['start', 'web']);
  // Both run on one machine, and neither ends the other.
  const going = await lastCount(server);
  await waitUntil(async () => (await lastCount(server)) > going + 2, { what: 'the first one runs on' });
  assert.equal(await succeed(other, ['exec', 'web', 'cat', '/kept', '/shelf/kept']), 'on-disk\nin-volume');
  const lines = (await succeed(other, ['exec', 'web', 'cat', '/count'])).split('\n').map(Number);
  // What was written when the disk was copied is there as it was written.
  const restarted = lines.indexOf(1, 1);
  const before = lines.slice(0, restarted === -1 ? lines.length : restarted);
  assert.ok(before.length > 2 && before.every((line, index) => line === index + 1), before.join());
});

test('a restore replaces nothing, and says what to do', async (t) => {
  const running = await refusal(server, 'restore', archive);
  assert.match(running, /a server or an engine runs on .*\n {2}try: svc server stop, or another --path/);
  const other = await SupervisedServer.prepare();
  t.after(() => rm(other.folder, { recursive: true, force: true }));
  await writeFile(join(other.folder, 'mine'), 'kept');
  assert.match(await refusal(other, 'restore', archive), /is not empty \(mine\).*\n {2}try: mv /);
  assert.deepEqual(await readdir(other.folder), ['mine']);
  assert.match(await refusal(server, 'backup', archive), /is there already\n {2}try: another name/);
});

test('a refused backup prints one error with advice, and leaves no file', async (t) => {
  const other = await SupervisedServer.prepare();
  t.after(() => rm(other.folder, { recursive: true, force: true }));
  const file = join(scratch, 'refused');
  const said = await refusal(other, 'backup', file);
  assert.match(said, /^error: there is no store in .*\n {2}try: --path .*--database .*\n$/);
  const { error } = JSON.parse(await refusal(other, '-o', 'json', 'backup', file)) as {
    error: { code: string };
  };
  assert.equal(error.code, 'not_found');
  for (const name of [file, `${file}.unfinished`]) await assert.rejects(stat(name), /ENOENT/);
});

test('orphans of the engine are listed and removed by id; a sandbox with an owner is neither', async () => {
  const { id } = await server.engine().createSandbox({
    spec: { image: { type: 'oci', reference: BUSYBOX } },
    start: true,
  });
  const list = async () =>
    JSON.parse(await succeed(server, ['orphan', 'ls', '-o', 'json'])) as { id: string }[];
  const { volumes } = server.engine();
  await volumes.createVolume('stray-volume', 16);
  await server.engine().createSnapshot({ id: 'stray-snapshot', sandboxId: id });
  assert.partialDeepStrictEqual(await list(), [
    { kind: 'sandbox', id, state: 'running', image: BUSYBOX },
    { kind: 'volume', id: 'stray-volume', state: null, image: null },
    { kind: 'snapshot', id: 'stray-snapshot', state: null, image: BUSYBOX },
  ]);
  assert.equal((await list()).length, 3);
  assert.match(
    await succeed(server, ['orphan', 'ls']),
    new RegExp(`^ID +KIND +STATE.*\n${id} +sandbox +running`),
  );
  const shelf = (await volumes.listVolumes()).find((each) => each.id !== 'stray-volume')?.id ?? assert.fail();
  const kept = await refusal(server, 'orphan', 'rm', '-f', shelf);
  assert.match(kept, /^error: volume \S+ is 'shelf' of default\n {2}try: svc volume rm shelf/);
  const { id: owned } = JSON.parse(await succeed(server, ['inspect', 'web'])) as { id: string };
  const said = await refusal(server, 'orphan', 'rm', '-f', owned);
  assert.match(said, /^error: sandbox \S+ is 'web' of default\n {2}try: svc rm web/);
  const running = await refusal(server, 'orphan', 'rm', id);
  assert.match(running, /^error: sandbox \S+ runs\n {2}try: svc orphan rm -f \S+\ndata in \S+\n$/);
  assert.equal(await succeed(server, ['orphan', 'rm', '-f', id]), id);
  const rest = ['stray-volume', 'stray-snapshot'];
  // By two people at once: what one has done the other finds done, or gone.
  const removals = await Promise.all([1, 2].map(() => server.svc('orphan', 'rm', ...rest)));
  for (const { code, text } of removals)
    assert.match(text, code === 0 ? /^stray-volume\nstray-snapshot\ndata in \S+\n$/ : /nothing with the id/);
  assert.match(await refusal(server, 'orphan', 'rm', id), /the engine has nothing with the id/);
  assert.deepEqual(await list(), []);
  const going = await lastCount(server);
  await waitUntil(async () => (await lastCount(server)) > going, { what: 'the one with an owner runs on' });
});

test('a restore that fails leaves nothing', async (t) => {
  const other = await SupervisedServer.prepare();
  t.after(() => rm(other.folder, { recursive: true, force: true }));
  const whole = await readFile(archive);
  await writeFile(join(scratch, 'cut'), whole.subarray(0, whole.length - 100));
  whole.writeUInt8(whole.readUInt8(whole.length >> 1) ^ 1, whole.length >> 1);
  await writeFile(join(scratch, 'changed'), whole);
  for (const name of ['cut', 'changed']) {
    assert.match(
      await refusal(other, 'restore', join(scratch, name)),
      /cannot be restored.*Nothing was changed/,
    );
    assert.deepEqual(await readdir(other.folder), []);
    await assert.rejects(stat(stageOf(other)), /ENOENT/);
  }
});

test('after a restore that was killed no server starts until it is begun anew, which takes nothing that was left', async (t) => {
  const other = await SupervisedServer.prepare();
  t.after(() => rm(other.folder, { recursive: true, force: true }));
  const killed = spawn(SVC, ['--path', other.folder, 'restore', '-'], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  // It goes away before it has read all.
  killed.stdin.on('error', () => undefined);
  const whole = await readFile(archive);
  killed.stdin.write(whole.subarray(0, whole.length >> 1));
  const planted = join(stageOf(other), 'data/server');
  await waitUntil(async () => (await readdir(planted).catch(() => [])).length > 0, { what: 'it writes' });
  const ended = once(killed, 'exit');
  killed.kill('SIGKILL');
  await ended;
  await writeFile(join(planted, 'planted'), '');
  for (const program of ['server', 'engine']) {
    const said = await refusal(other, program, 'start', '--detach');
    assert.match(said, /was begun and has not ended\n {2}try: svc restore FILE/);
  }
  assert.deepEqual(await readdir(other.folder), []);
  const { code, text } = await other.svc('restore', archive);
  assert.equal(code, 0, text);
  await assert.rejects(stat(stageOf(other)), /ENOENT/);
  assert.deepEqual((await readdir(join(other.folder, 'server'))).toSorted(), [
    'secrets.key',
    'signing.key',
    'store.db',
  ]);
  for (const name of ['secrets.key', 'signing.key']) {
    const path = join('server', name);
    assert.deepEqual(
      await readFile(join(other.folder, path)),
      await readFile(join(server.folder, path)),
      name,
    );
  }
});

test('a disk that is too small for a backup, or for what it holds, is named, and nothing is left on it', async (t) => {
  const other = await SupervisedServer.prepare();
  await exec('mount', ['-t', 'tmpfs', '-o', 'size=512k', 'svc-test', other.folder]);
  t.after(async () => {
    await exec('umount', [other.folder]);
    await rm(other.folder, { recursive: true });
  });
  assert.match(
    await refusal(other, 'restore', archive),
    /too little room.*Nothing was changed\n {2}try: df -h/,
  );
  assert.match(await refusal(server, 'backup', join(other.folder, 'all')), /too little room for the backup/);
  assert.deepEqual(await readdir(other.folder), []);
});

test('the small one has the store and the keys, also through a pipe', async (t) => {
  const other = await SupervisedServer.prepare();
  t.after(() => rm(other.folder, { recursive: true, force: true }));
  const small = join(scratch, 'small');
  await exec('sh', ['-c', `umask 077; ${SVC} --path ${server.folder} backup - --no-disks > ${small}`]);
  const { code, text } = await other.svc('restore', small);
  assert.equal(code, 0, text);
  assert.deepEqual((await readdir(other.folder)).toSorted(), ['authority.pem', 'server']);
});

test("root reads nothing for the server's user: neither what a link names nor what that user may not read", async (t) => {
  const other = await SupervisedServer.prepare();
  t.after(() => rm(other.folder, { recursive: true, force: true }));
  assert.equal((await other.svc('restore', archive)).code, 0);
  const planted = join(other.folder, 'server/signing.key');
  const target = join(scratch, 'planted');
  const plants = {
    'of any user': () => symlink('/etc/hostname', planted),
    "of root's": () => symlink('/etc/shadow', planted),
    "root's own": () => writeFile(planted, 'secret', { mode: 0o600 }),
  };
  for (const [whose, plant] of Object.entries(plants)) {
    await rm(planted, { force: true });
    await plant();
    await refusal(other, 'backup', '--no-disks', target);
    for (const name of [target, `${target}.unfinished`]) await assert.rejects(stat(name), /ENOENT/, whose);
  }
});
