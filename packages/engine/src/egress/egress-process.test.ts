import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { waitUntil } from '@svc/contract/testing';
import { test } from 'node:test';
import { pino } from 'pino';
import { BUILT_SVC_HOST } from '../host/svc-host-calls.ts';
import { SURROUNDINGS } from '../testing/surroundings.ts';
import { EgressProcess, whenListening } from './egress-process.ts';
import { recordProcess } from './recorded-process.ts';

const HOST_ID = 64_559;
const EARLIER_PORT = 1053;

test('nobody waits for a new process while that of an earlier engine answers; it is replaced all the same', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-egress-'));
  t.after(() => rm(folder, { recursive: true }));
  const earlier = spawn('sleep', ['1000']);
  t.after(() => earlier.kill('SIGKILL'));
  const ended = once(earlier, 'exit');
  await once(earlier, 'spawn');
  const recordFile = join(folder, 'egress.json');
  await recordProcess(recordFile, earlier.pid, EARLIER_PORT);
  const ports: number[] = [];
  const mayGoOn = Promise.withResolvers<void>();
  const egress = new EgressProcess({
    listenAddress: '127.0.0.1',
    ipv6ListenAddress: null,
    hostId: HOST_ID,
    resolvers: [],
    hostProgram: BUILT_SVC_HOST,
    recordFile,
    logger: pino({ level: 'silent' }),
    codeCache: null,
    surroundings: () => SURROUNDINGS,
    sandboxes: () => ({ policies: new Map(), proxied: new Map(), pins: new Map() }),
    onReport: () => undefined,
    onPin: async () => await Promise.resolve(),
    onListening: async (port) => {
      ports.push(port);
      // The new one is held up for as long as we like: that keeps nobody from going on.
      if (port !== EARLIER_PORT) await mayGoOn.promise;
    },
  });
  t.after(() => egress.close());
  await egress.start();
  assert.equal(ports[0], EARLIER_PORT);
  assert.equal(earlier.exitCode ?? earlier.signalCode, null, 'it answers until then');
  mayGoOn.resolve();
  await ended;
  assert.equal(ports.length, 2);
});

test('a process that never listens is named, and for how long it was waited for', async (t) => {
  const silent = spawn('sleep', ['1000']);
  t.after(() => silent.kill('SIGKILL'));
  await assert.rejects(whenListening(silent, 20), /^Error: The egress process does not listen after 20 ms$/);
});

/** Has a process that listens, says which, and gets no further. */
const HELD_UP = `
  import { EgressProcess } from ${JSON.stringify(import.meta.resolve('./egress-process.ts'))};
  import { SURROUNDINGS } from ${JSON.stringify(import.meta.resolve('../testing/surroundings.ts'))};
  const [recordFile, hostProgram] = process.argv.slice(1);
  const none = () => undefined;
  const egress = new EgressProcess({
    listenAddress: '127.0.0.1', ipv6ListenAddress: null, hostId: ${HOST_ID}, resolvers: [], hostProgram, recordFile,
    logger: { warn: none, info: none }, codeCache: null, surroundings: () => SURROUNDINGS, onReport: none, onPin: none,
    sandboxes: () => ({ policies: new Map(), proxied: new Map(), pins: new Map() }),
    onListening: () => { console.log(egress.pid); return new Promise(none); },
  });
  await egress.start();`;

test('a process whose engine is killed before it wrote down which is its own ends too', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-egress-'));
  t.after(() => rm(folder, { recursive: true }));
  const args = ['--input-type=module', '-e', HELD_UP, join(folder, 'egress.json'), BUILT_SVC_HOST];
  const engine = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => engine.kill('SIGKILL'));
  const [said] = (await once(engine.stdout, 'data')) as [Buffer];
  const pid = Number(said.toString());
  assert.ok(pid > 1, said.toString());
  t.after(() => isThere(pid) && process.kill(pid, 'SIGKILL'));
  engine.kill('SIGKILL');
  await waitUntil(() => !isThere(pid), 'it has ended');
});

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
