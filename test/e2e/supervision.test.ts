import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createHash } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { EngineClient, findEngine, readProcessState } from '@svc/engine/client';
import { findServer, readStatus, SERVER_MAIN } from '@svc/server/admin';
import { writeBusyboxRootfs } from '../../packages/engine/src/images/test-images.ts';
import { BUSYBOX } from '../engine/start-engine.ts';
import { waitUntil } from '../engine/wait-until.ts';

const SVC = resolve(import.meta.dirname, '../../svc');
const SLOW = { timeoutMs: 120_000 };
const exec = promisify(execFile);

interface Outcome {
  readonly code: number;
  readonly text: string;
}

/** A server with its engine on a folder of its own, as an operator starts them. */
class Place {
  readonly folder: string;
  readonly port: number;

  private constructor(folder: string, port: number) {
    this.folder = folder;
    this.port = port;
  }

  static async make(t: TestContext): Promise<Place> {
    const folder = await mkdtemp(join(tmpdir(), 'svc-supervision-'));
    await chmod(folder, 0o711);
    const place = new Place(folder, await freePort());
    t.after(() => place.clear());
    return place;
  }

  get runFolder(): string {
    return join('/run/svc', createHash('sha256').update(this.folder).digest('hex').slice(0, 8));
  }

  async svc(...words: readonly string[]): Promise<Outcome> {
    return await exec(SVC, ['--path', this.folder, ...words]).then(
      ({ stdout, stderr }) => ({ code: 0, text: stdout + stderr }),
      ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({
        code,
        text: stdout + stderr,
      }),
    );
  }

  get startWords(): readonly string[] {
    return ['--dev', '--port', String(this.port), '--isolation', 'container'];
  }

  async start(): Promise<void> {
    const { code, text } = await this.svc('server', 'start', '--detach', ...this.startWords);
    assert.equal(code, 0, text);
    await this.untilHealthy();
  }

  async serverPid(): Promise<number> {
    return (await findServer(this.folder)) ?? assert.fail('no server runs');
  }

  async webPid(): Promise<number> {
    const pid = await this.serverPid();
    const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(' ');
    for (const child of children) {
      const words = await readFile(`/proc/${child}/cmdline`, 'utf8').catch(() => '');
      if (words.includes('server/src/main.ts')) return Number(child);
    }
    return assert.fail('no web-facing process runs');
  }

  async enginePid(): Promise<number> {
    return (await findEngine(this.folder))?.pid ?? assert.fail('no engine runs');
  }

  async health(): Promise<number> {
    const answer = await fetch(`http://127.0.0.1:${this.port}/api/v1/health`, {
      signal: AbortSignal.timeout(1000),
    }).catch(() => undefined);
    await answer?.body?.cancel();
    return answer?.status ?? 0;
  }

  async untilHealthy(): Promise<void> {
    await waitUntil(async () => (await this.health()) === 200, { ...SLOW, what: 'the server is healthy' });
  }

  async call(method: string, params: object): Promise<{ result?: unknown; error?: { data?: unknown } }> {
    const response = await fetch(`http://127.0.0.1:${this.port}/api/v1/rpc`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', method, params, id: 1 }),
    });
    return (await response.json()) as { result?: unknown; error?: { data?: unknown } };
  }

  async log(): Promise<string> {
    return await readFile(join(this.folder, 'server.log'), 'utf8');
  }

  async importBusybox(): Promise<void> {
    const rootfs = await mkdtemp(join(tmpdir(), 'svc-busybox-'));
    await writeBusyboxRootfs(rootfs);
    await this.engine().importImage({ path: rootfs, reference: BUSYBOX });
    await rm(rootfs, { recursive: true, force: true });
  }

  engine(): EngineClient {
    return new EngineClient({ socketPath: join(this.folder, 'engine-root.sock') });
  }

  async clear(): Promise<void> {
    await this.svc('server', 'stop');
    if ((await this.svc('engine', 'start', '--detach', '--isolation', 'container')).code === 0) {
      for (const { id } of await this.engine().listSandboxes()) await this.engine().removeSandbox(id);
      await this.svc('engine', 'stop');
    }
    await exec('umount', ['-R', '-l', this.runFolder]).catch(() => undefined);
    await rm(this.runFolder, { recursive: true, force: true });
    await rm(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

test('a frozen engine is noticed and replaced: who waits is told, and its sandboxes run on', async (t) => {
  const place = await Place.make(t);
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
  assert.equal(await readProcessState(frozen), undefined);
  const look = { sandbox: 'steady', command: 'cat', args: ['/tmp/note'] };
  let found: unknown;
  await waitUntil(
    async () => (found = (await place.call('sandbox.command.run', look)).result) !== undefined,
    SLOW,
  );
  assert.partialDeepStrictEqual(found, { output: 'here\n' });
  assert.match(await place.log(), /the engine hangs; it is killed and started again/);
});

test('a frozen web-facing process is replaced, and the status says meanwhile what is the matter', async (t) => {
  const place = await Place.make(t);
  await place.start();
  const frozen = await place.webPid();
  process.kill(frozen, 'SIGSTOP');
  const { code, text } = await place.svc('server', 'status');
  // On a machine that is slow it may have been replaced before it is asked.
  if (code !== 0) assert.match(text, /does not answer|does not run/);
  await place.untilHealthy();
  assert.notEqual(await place.webPid(), frozen);
  assert.match(await place.log(), /"signal":"SIGKILL".*the web-facing process ended; it is started again/);
});

test('a web-facing process that is killed before it listens does not end the server', async (t) => {
  const place = await Place.make(t);
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
  const place = await Place.make(t);
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
  assert.equal(await readProcessState(second), undefined);
  assert.equal(existsSync(place.runFolder), false, 'the run folder of an engine without sandboxes is left');
});

test('a server uses an engine that was started on its own, and leaves it', async (t) => {
  const place = await Place.make(t);
  assert.equal((await place.svc('engine', 'start', '--detach', '--isolation', 'container')).code, 0);
  const engine = await place.enginePid();
  await place.start();
  assert.equal((await readStatus(place.folder))?.engine.isHealthy, true);
  assert.equal((await place.svc('server', 'stop')).code, 0);
  assert.equal(await place.enginePid(), engine);
});

test('a supervisor that nobody reaps does not count as running', async (t) => {
  const place = await Place.make(t);
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
  const place = await Place.make(t);
  const microvm = await place.svc('server', 'start', '--detach', '--isolation', 'microvm', '--port', '0');
  assert.equal(microvm.code, 2);
  assert.match(microvm.text, /--isolation microvm: this host has no such class \(no runtime of this class/);
  assert.equal(await findServer(place.folder), undefined);
  const made = await exec(SVC, ['--path', '/proc/svc', 'server', 'start', '--detach'], {
    timeout: 60_000,
  }).catch((error: { code: number; stderr: string }) => error);
  assert.match(made.stderr, /--path must be a folder on a disk/);
});
