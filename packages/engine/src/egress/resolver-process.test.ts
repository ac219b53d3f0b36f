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
import { HOST_NETWORKS } from '../testing/host-networks.ts';
import { whenListening } from './supervised-process.ts';
import { recordProcess } from './recorded-process.ts';
import { ResolverProcess } from './resolver-process.ts';

const HOST_ID = 64_559;
const EARLIER_PORT = 1053;
const CONFIG = {
  listenAddress: '127.0.0.1',
  ipv6ListenAddress: null,
  hostId: HOST_ID,
  groupId: HOST_ID,
  resolvers: [],
  hostNetworks: HOST_NETWORKS,
  policies: new Map(),
  proxied: new Set<string>(),
  scopes: new Map(),
  pins: new Map(),
};

test('names are answered by the process of an earlier engine until a new one is there, which replaces it', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-egress-'));
  t.after(() => rm(folder, { recursive: true }));
  const earlier = spawn('sleep', ['1000']);
  t.after(() => earlier.kill('SIGKILL'));
  const ended = once(earlier, 'exit');
  await once(earlier, 'spawn');
  const recordFile = join(folder, 'resolver.json');
  await recordProcess(recordFile, earlier.pid, EARLIER_PORT);
  const ports: number[] = [];
  const mayGoOn = Promise.withResolvers<void>();
  const resolver = new ResolverProcess({
    hostProgram: BUILT_SVC_HOST,
    recordFile,
    logger: pino({ level: 'silent' }),
    codeCache: null,
    config: () => CONFIG,
    onReport: () => undefined,
    onPin: async () => await Promise.resolve(),
    onListening: async (port) => {
      ports.push(port);
      // The new process is delayed by the test; meanwhile the earlier one goes on serving.
      if (port !== EARLIER_PORT) await mayGoOn.promise;
    },
  });
  t.after(() => resolver.close());
  await resolver.start();
  assert.equal(ports[0], EARLIER_PORT);
  assert.equal(earlier.exitCode ?? earlier.signalCode, null, 'it answers until then');
  mayGoOn.resolve();
  await ended;
  assert.equal(ports.length, 2);
});

test('a process that never listens is named, and for how long it was waited for', async (t) => {
  const silent = spawn('sleep', ['1000']);
  t.after(() => silent.kill('SIGKILL'));
  const never = new Promise<never>(() => undefined);
  await assert.rejects(whenListening(silent, never, 20), /^Error: The process does not listen after 20 ms$/);
});

/** Has a process that listens, says which, and gets no further. */
const HELD_UP = `
  import { ResolverProcess } from ${JSON.stringify(import.meta.resolve('./resolver-process.ts'))};
  import { HOST_NETWORKS } from ${JSON.stringify(import.meta.resolve('../testing/host-networks.ts'))};
  const [recordFile, hostProgram] = process.argv.slice(1);
  const none = () => undefined;
  const config = () => ({
    listenAddress: '127.0.0.1', ipv6ListenAddress: null, hostId: ${HOST_ID}, groupId: ${HOST_ID}, resolvers: [], hostNetworks: HOST_NETWORKS,
    policies: new Map(), proxied: new Set(), scopes: new Map(), pins: new Map(),
  });
  const resolver = new ResolverProcess({
    hostProgram, recordFile, logger: { warn: none, info: none }, codeCache: null, config, onReport: none, onPin: none,
    onListening: () => { console.log(resolver.pid); return new Promise(none); },
  });
  await resolver.start();`;

test('a process whose engine is killed before it wrote down which is its own ends too', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-egress-'));
  t.after(() => rm(folder, { recursive: true }));
  const args = ['--input-type=module', '-e', HELD_UP, join(folder, 'resolver.json'), BUILT_SVC_HOST];
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
