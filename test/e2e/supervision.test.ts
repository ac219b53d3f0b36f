import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { findEngine, readProcessState } from '@svc/engine/client';
import { findServer, readStatus, SERVER_MAIN } from '@svc/server/admin';
import { BUSYBOX } from '../engine/start-engine.ts';
import { SupervisedServer } from './supervised-server.ts';

const SLOW = { timeoutMs: 120_000 };

async function prepare(t: TestContext): Promise<SupervisedServer> {
  const place = await SupervisedServer.prepare();
  t.after(() => place.clear());
  return place;
}

test('a frozen engine is detected and replaced: pending calls fail, and its sandboxes run on', async (t) => {
  const place = await prepare(t);
  await place.start();
  await place.importBusybox();
  await place.call('sandbox.start', { sandbox: 'steady', config: { image: BUSYBOX } });
  const started = { sandbox: 'steady', command: 'sh', args: ['-c', 'echo here > /tmp/note'] };
  await place.call('sandbox.command.run', started);
  const frozen = await place.enginePid();
  process.kill(frozen, 'SIGSTOP');
  const waiting = place.call('sandbox.start', { sandbox: 'other', config: { image: BUSYBOX } });
  await waitUntil(async () => (await place.health()) === 503, { ...SLOW, what: 'the freeze is noticed' });
  assert.match(JSON.stringify((await waiting).error), /orchestrator_unreachable/);
  await place.untilHealthy();
  assert.notEqual(await place.enginePid(), frozen);
  assert.equal(readProcessState(frozen), undefined);
  const look = { sandbox: 'steady', command: 'cat', args: ['/tmp/note'] };
  let found: unknown;
  await waitUntil(
    async () => (found = (await place.call('sandbox.command.run', look)).result) !== undefined,
    SLOW,
  );
  assert.partialDeepStrictEqual(found, { output: 'here\n' });
  assert.match(await place.log(), /the engine hangs; it is killed and started again/);
});

test('status and engine status name each process that is frozen, and what to do', async (t) => {
  const place = await prepare(t);
  await place.start();
  const [supervisor, web, engine] = [await place.serverPid(), await place.webPid(), await place.enginePid()];
  // First of all, so that it replaces neither of the others.
  for (const pid of [supervisor, web, engine]) process.kill(pid, 'SIGSTOP');
  const { code, text } = await place.svc('server', 'status');
  assert.equal(code, 1);
  assert.match(text, new RegExp(`the supervisor \\(pid ${supervisor}\\) .* replaces nothing that ends`));
  assert.match(text, new RegExp(`the web-facing process \\(pid ${web}\\) .*: kill -CONT ${web}\n`));
  assert.match(text, new RegExp(`the engine \\(pid ${engine}\\) .*: kill -CONT ${engine}\n`));
  const ofEngine = await place.svc('engine', 'status');
  assert.match(ofEngine.text, new RegExp(`the engine \\(pid ${engine}\\) was stopped by a signal`));
  process.kill(web, 'SIGCONT');
  process.kill(engine, 'SIGCONT');
  const { frozen, running } = JSON.parse((await place.svc('server', 'status', '--json')).text) as {
    readonly frozen: unknown;
    readonly running: boolean;
  };
  assert.deepEqual([running, frozen], [true, [{ process: 'supervisor', pid: supervisor }]]);
  process.kill(supervisor, 'SIGCONT');
});

test('a frozen tini is replaced with its engine, also one that another server started', async (t) => {
  const place = await prepare(t);
  await place.start();
  for (const isAdopted of [false, true]) {
    if (isAdopted) {
      process.kill(await place.serverPid(), 'SIGKILL');
      await place.start();
    }
    const engine = await place.enginePid();
    const tini = readProcessState(engine)?.parent ?? 0;
    assert.equal(readProcessState(tini)?.name, 'tini');
    process.kill(tini, 'SIGSTOP');
    await waitUntil(async () => ((await findEngine(place.folder))?.pid ?? engine) !== engine, SLOW);
    await place.untilHealthy();
    assert.equal(readProcessState(tini), undefined, 'nothing of it is left');
  }
});

test('a web-facing process that was frozen when its supervisor was killed keeps the next server from nothing', async (t) => {
  const place = await prepare(t);
  await place.start();
  const frozen = await place.webPid();
  process.kill(frozen, 'SIGSTOP');
  process.kill(await place.serverPid(), 'SIGKILL');
  await place.start();
  assert.equal(readProcessState(frozen), undefined);
  assert.match(await place.log(), /"isFrozen":true.*the web-facing process of a former server is ended/);
});

test('a frozen web-facing process is replaced, and the status says meanwhile what is the matter', async (t) => {
  const place = await prepare(t);
  await place.start();
  const frozen = await place.webPid();
  process.kill(frozen, 'SIGSTOP');
  const { code, text } = await place.svc('server', 'status');
  // On a machine that is slow it may have been replaced before it is asked.
  if (code !== 0) assert.match(text, /does not answer|no server runs/);
  await place.untilHealthy();
  assert.notEqual(await place.webPid(), frozen);
  assert.match(await place.log(), /"signal":"SIGKILL".*the web-facing process ended; it is started again/);
});

test('a web-facing process that is killed before it listens does not end the server', async (t) => {
  const place = await prepare(t);
  const { code } = await place.svc('server', 'keygen');
  assert.equal(code, 0);
  const child = spawn(process.execPath, [SERVER_MAIN, '--path', place.folder, ...place.startWords], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()));
  await waitUntil(() => existsSync(join(place.folder, 'server.pid')), SLOW);
  process.kill(await place.webPid(), 'SIGKILL');
  await place.untilHealthy();
  assert.match(log, /"signal":"SIGKILL","retryMs":0,.*the web-facing process ended; it is started again/);
});

test('after the supervisor was killed the next one takes up the engine, watches it and ends it', async (t) => {
  const place = await prepare(t);
  await place.start();
  const first = await place.enginePid();
  process.kill(await place.serverPid(), 'SIGKILL');
  await place.start();
  assert.equal(await place.enginePid(), first);
  process.kill(first, 'SIGKILL');
  await waitUntil(async () => ((await findEngine(place.folder))?.pid ?? first) !== first, SLOW);
  await place.untilHealthy();
  const second = await place.enginePid();
  process.kill(await place.serverPid(), 'SIGKILL');
  await place.start();
  assert.equal(await place.enginePid(), second);
  assert.equal((await place.svc('server', 'stop')).code, 0);
  assert.equal(await findEngine(place.folder), undefined);
  assert.equal(readProcessState(second), undefined);
  assert.equal(existsSync(place.runFolder), false, 'the run folder of an engine without sandboxes is left');
});

test('a server uses an engine that was started on its own, and leaves it', async (t) => {
  const place = await prepare(t);
  assert.equal((await place.svc('engine', 'start', '--detach', '--isolation', 'container')).code, 0);
  const engine = await place.enginePid();
  await place.start();
  assert.equal((await readStatus(place.folder))?.engine.isHealthy, true);
  assert.equal((await place.svc('server', 'stop')).code, 0);
  assert.equal(await place.enginePid(), engine);
});

test('a server elsewhere uses an engine by its socket, which says whose it is to be', async (t) => {
  const place = await prepare(t);
  const elsewhere = await SupervisedServer.prepare();
  t.after(async () => {
    await elsewhere.svc('server', 'stop');
    await rm(elsewhere.folder, { recursive: true, force: true });
  });
  const owner = ['--socket-owner', '64555:64555'];
  const wrong = await place.svc('engine', 'start', '--socket-owner', 'no-such-user');
  assert.deepEqual([wrong.code, wrong.text], [2, "error: --socket-owner: there is no user 'no-such-user'\n"]);
  const started = await place.svc('engine', 'start', '--detach', '--isolation', 'container', ...owner);
  assert.equal(started.code, 0, started.text);
  const socket = ['--engine-socket', join(place.folder, 'engine.sock')];
  const words = ['server', 'start', '--detach', '--dev', '--port', String(elsewhere.port), ...socket];
  assert.equal((await elsewhere.svc(...words, '--run-as', '64556:64557')).code, 0);
  const remedy = /is not for user 64556; start the engine with `svc engine start --socket-owner 64556:64557`/;
  const reason = async () => (await readStatus(elsewhere.folder))?.engine.reason ?? '';
  await waitUntil(async () => remedy.test(await reason()), { ...SLOW, what: 'the remedy is reported' });
  assert.equal((await elsewhere.svc('server', 'stop')).code, 0);
  await rm(elsewhere.folder, { recursive: true });
  await mkdir(elsewhere.folder, { mode: 0o711 });
  const served = await elsewhere.svc(...words, '--run-as', '64555:64555');
  assert.equal(served.code, 0, served.text);
  await elsewhere.untilHealthy();
  assert.equal((await elsewhere.svc('server', 'stop')).code, 0);
  await place.enginePid();
});

test('a supervisor that is a zombie does not count as running', async (t) => {
  const place = await prepare(t);
  const words = [process.execPath, SERVER_MAIN, '--path', place.folder, ...place.startWords];
  const parent = spawn('sh', ['-c', '"$@" & exec sleep 1000', 'sh', ...words], { stdio: 'ignore' });
  t.after(() => parent.kill('SIGKILL'));
  await place.untilHealthy();
  const pid = await place.serverPid();
  process.kill(pid, 'SIGKILL');
  await waitUntil(async () => /^State:\s+Z/m.test(await readFile(`/proc/${pid}/status`, 'utf8')), SLOW);
  await place.start();
  assert.notEqual(await place.serverPid(), pid);
});

test('a class that the host lacks, and a folder that the kernel makes up, are refused with the reason', async (t) => {
  const place = await prepare(t);
  const microvm = await place.svc('server', 'start', '--detach', '--isolation', 'microvm', '--port', '0');
  assert.equal(microvm.code, 2);
  assert.match(microvm.text, /--isolation microvm: this host has no such class \(no runtime of this class/);
  assert.equal(await findServer(place.folder), undefined);
  const made = await place.svc('--path', '/proc/svc', 'server', 'start', '--detach');
  assert.match(made.text, /--path must be a folder on a disk/);
});
