import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { waitUntil } from '@svc/contract/testing';
import { scopeKey } from '../egress/proxies.ts';
import { readCgroupLayout, treeOf } from '../cgroup/cgroup-layout.ts';
import { ownPath } from '../cgroup/own-path.ts';
import { recordProcess } from '../egress/recorded-process.ts';
import { readProcessState } from '../host/process-state.ts';
import { resolvePolicy } from '../policy/resolve-policy.ts';
import { probe, type Attempt } from '../testing/probe.ts';
import { inNamespace } from '../testing/command.ts';
import type { Internet } from '../testing/internet.ts';
import { likeProcess, newProxyOf, proxyOf, succeeds } from '../testing/proxy-process.ts';
import type { TestEngine } from '../testing/test-engine.ts';
import { withInternet } from '../testing/with-internet.ts';
import type { LinuxNetwork } from './linux-network.ts';
import { keptAs } from './network.suite.ts';
import type { Slot } from './network.ts';
import { proxyLinkPrefix } from './ruleset.ts';

let internet: Internet;
let engine: TestEngine;
let network: LinuxNetwork;

withInternet(96, (connected) => {
  ({ internet, engine, network } = connected);
});

const NAME = 'public.example';
/** What only a name decides goes through a proxy. */
const POLICY = resolvePolicy({
  policy: { rules: [{ direction: 'egress', action: 'allow', destination: { domain: NAME } }] },
});

async function sandboxOf(t: TestContext, scope: string): Promise<Slot> {
  const slot = await network.acquire('public', AbortSignal.timeout(100_000));
  t.after(() => network.release(slot.key));
  await network.setPolicy(slot, POLICY, null, scope);
  return slot;
}

const pidOf = (scope: string) => proxyOf(engine, scope);
const newPidOf = (scope: string, old: number | null = null) => newProxyOf(engine, scope, old);

/** Resolves the name, and says something over a connection to where it leads. */
async function reaches(slot: Slot): Promise<boolean> {
  const server = slot.link?.nameserver ?? '';
  const asked: Attempt = { kind: 'dns', server, name: NAME, transport: 'udp' };
  const opened: Attempt = { kind: 'tcp', host: internet.publicAddress, port: 8080 };
  const [address] = await probe(slot.networkNamespace, asked);
  const [answer] = await probe(slot.networkNamespace, opened);
  return address === internet.publicAddress && answer?.startsWith('you are') === true;
}

test('each scope has a proxy of its own, of a user of its own, started when a sandbox needs it', async (t) => {
  assert.equal(pidOf('one'), null);
  const [first, second] = [await sandboxOf(t, 'one'), await sandboxOf(t, 'two')];
  const pids = [await newPidOf('one'), await newPidOf('two')];
  assert.equal(new Set(pids).size, 2);
  const ids = pids.map(uidOf);
  assert.equal(new Set(ids).size, 2);
  assert.ok(await reaches(first));
  assert.ok(await reaches(second));
});

test('a proxy has no privileges, is read by root alone, and leaves no core file', async (t) => {
  await sandboxOf(t, 'one');
  const pid = await newPidOf('one');
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  for (const set of ['CapPrm', 'CapEff', 'CapAmb', 'CapInh'])
    assert.match(status, new RegExp(`^${set}:\t0+$`, 'm'));
  assert.match(status, /^NoNewPrivs:\t1$/m);
  assert.equal(statSync(`/proc/${pid}/mem`).uid, 0);
  assert.match(readFileSync(`/proc/${pid}/limits`, 'utf8'), /^Max core file size +1 +1 /m);
});

test('a proxy sees its program alone, read-only, and has a filter', async (t) => {
  await sandboxOf(t, 'one');
  const pid = await newPidOf('one');
  const root = `/proc/${pid}/root`;
  // The folders on the way to the checkout are there, empty but for it.
  const isOnTheWay = (folder: string) => import.meta.dirname.startsWith(`/${folder}/`);
  for (const hidden of ['run', 'var', 'var/lib', 'home', 'root', 'proc', 'dev', 'etc/passwd'])
    assert.ok(isOnTheWay(hidden) || !existsSync(`${root}/${hidden}`), hidden);
  const mounts = readFileSync(`/proc/${pid}/mounts`, 'utf8').trim().split('\n');
  assert.ok(mounts.length > 1);
  for (const mount of mounts) assert.match(mount, /^\S+ \S+ \S+ ro,nosuid,nodev/);
  assert.match(readFileSync(`/proc/${pid}/status`, 'utf8'), /^Seccomp:\t2$/m);
});

test('a proxy sees all that its built program compares itself with, so that it is what runs', async (t) => {
  await sandboxOf(t, 'one');
  const pid = await newPidOf('one');
  const built = fileURLToPath(new URL('../../build/proxy/main.js', import.meta.url));
  const madeOf = JSON.parse(/MADE_OF = (.*);/.exec(readFileSync(built, 'utf8'))?.[1] ?? '[]') as [string][];
  assert.ok(madeOf.length > 10);
  for (const [path] of madeOf)
    assert.ok(existsSync(`/proc/${pid}/root${resolve(dirname(built), path)}`), path);
});

test('a proxy is limited in memory, CPU and threads, beside the others and not among what serves all', async (t) => {
  await sandboxOf(t, 'one');
  const pid = await newPidOf('one');
  const name = `svc-tenants/${engine.options.instance}-${scopeKey('one')}`;
  const own = readFileSync(`/proc/${pid}/cgroup`, 'utf8');
  const layout = readCgroupLayout();
  for (const controller of ['cpu', 'memory', 'pids']) {
    const tree = treeOf(layout, controller);
    assert.ok(tree);
    assert.equal(ownPath(tree, controller, own), `/${name}`);
  }
  const memory = treeOf(layout, 'memory');
  const file = memory?.version === 2 ? 'memory.max' : 'memory.limit_in_bytes';
  assert.equal(readFileSync(`${memory?.mountpoint}/${name}/${file}`, 'utf8').trim(), String(768 * 2 ** 20));
});

test('a compromised proxy reaches no more of the network than the ceiling allows', async (t) => {
  const own = createServer((socket) => socket.destroy()).listen(0, '0.0.0.0');
  t.after(() => own.close());
  await once(own, 'listening');
  const { port } = own.address() as AddressInfo;
  const outcomesFor = async (inNetwork: LinuxNetwork) => {
    const slot = await inNetwork.acquire('public', AbortSignal.timeout(100_000));
    await inNetwork.setPolicy(slot, POLICY, null, 'one');
    const as = likeProcess(await newPidOf('one'));
    const says = (place: string) => succeeds(...as, 'bash', '-c', `echo > /dev/${place}`);
    const outcomes = {
      public: await says(`tcp/${internet.publicAddress}/8080`),
      private: await says(`tcp/${internet.privateAddress}/8080`),
      host: await says(`tcp/${slot.link?.gateway}/${port}`),
      loopback: await says(`tcp/127.0.0.1/${port}`),
    };
    await inNetwork.release(slot.key);
    return outcomes;
  };
  const open = { public: true, private: true, host: true, loopback: false };
  assert.deepEqual(await outcomesFor(network), open, 'without a ceiling');
  const held = engine.open({ ceiling: { groups: ['public'], ranges: [] } });
  await network.close();
  t.after(() => network.recover([]));
  await held.recover([]);
  try {
    const below = { ...open, private: false, host: false };
    assert.deepEqual(await outcomesFor(held), below, 'below the ceiling of public addresses');
  } finally {
    await held.close();
  }
});

test('a proxy that is stopped is replaced, and another scope does not notice', async (t) => {
  const [first, second] = [await sandboxOf(t, 'one'), await sandboxOf(t, 'two')];
  const [pid, other] = [await newPidOf('one'), await newPidOf('two')];
  assert.ok(await reaches(first));
  process.kill(pid, 'SIGSTOP');
  assert.ok(await reaches(second));
  await newPidOf('one', pid);
  assert.equal(pidOf('two'), other);
  assert.equal(readProcessState(pid), undefined);
  assert.ok(await reaches(first), 'the next one knows what it knew');
});

test('a proxy that ends again and again is replaced each time, and connections of another scope go on', async (t) => {
  const [first, second] = [await sandboxOf(t, 'one'), await sandboxOf(t, 'two')];
  assert.ok(await reaches(second));
  const line = inNamespace(second.networkNamespace, 'busybox', 'nc', internet.publicAddress, '8080');
  const client = spawn(line[0], line.slice(1), { stdio: ['pipe', 'pipe', 'ignore'] });
  t.after(() => client.kill('SIGKILL'));
  let heard = '';
  client.stdout.on('data', (data: Buffer) => (heard += data.toString()));
  await waitUntil(() => heard.includes('you are'));
  for (let round = 1; round <= 4; round++) {
    const pid = await newPidOf('one');
    process.kill(pid, 'SIGKILL');
    await newPidOf('one', pid);
    client.stdin.write(`round ${round}\n`);
    await waitUntil(() => heard.includes(`round ${round}`), 'it is answered');
  }
  assert.ok(await reaches(first));
});

test('the resolver is replaced when it is stopped', async (t) => {
  const slot = await sandboxOf(t, 'one');
  const file = join(engine.options.runFolder, 'resolver.json');
  const pidNow = () => {
    const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
    return text.endsWith('}') ? (JSON.parse(text) as { pid: number }).pid : null;
  };
  const pid = pidNow();
  assert.ok(pid !== null && pid > 1);
  process.kill(pid, 'SIGSTOP');
  await waitUntil(() => ![pid, null].includes(pidNow()), 'another resolver');
  assert.ok(await reaches(slot));
});

test('a proxy ends some time after its last sandbox, and nothing of it is left', async (t) => {
  const quick = engine.open({ proxyIdleMs: 100 });
  await network.close();
  await quick.recover([]);
  t.after(async () => {
    await quick.close();
    await network.recover([]);
  });
  const slot = await quick.acquire('public', AbortSignal.timeout(100_000));
  await quick.setPolicy(slot, POLICY, null, 'three');
  const pid = await newPidOf('three');
  assert.match(await engine.table(), new RegExp(`t_${scopeKey('three')}`));
  await quick.release(slot.key);
  await waitUntil(() => pidOf('three') === null, 'it is forgotten');
  assert.equal(readProcessState(pid), undefined);
  assert.doesNotMatch(await engine.table(), new RegExp(`t_${scopeKey('three')}`));
  const { mountpoint } = treeOf(readCgroupLayout(), 'memory') ?? {};
  const group = `${mountpoint}/svc-tenants/${engine.options.instance}-${scopeKey('three')}`;
  await waitUntil(() => !existsSync(group), 'its cgroup is gone');
  const prefix = proxyLinkPrefix(engine.options.instance);
  const ofLinks = async () => (await engine.traces()).filter((trace) => trace.includes(prefix));
  await waitUntil(
    async () => (await ofLinks()).length === 0,
    'its link is gone, also from the packet filter',
  );
});

test('there are as many proxies as the host has room for; one without a sandbox makes room', async (t) => {
  const small = engine.open({ maxProxies: 1 });
  await network.close();
  t.after(() => network.recover([]));
  await small.recover([]);
  try {
    const [first, second] = [
      await small.acquire('public', AbortSignal.timeout(100_000)),
      await small.acquire('public', AbortSignal.timeout(100_000)),
    ];
    await small.setPolicy(first, POLICY, null, 'four');
    const pid = await newPidOf('four');
    await assert.rejects(small.setPolicy(second, POLICY, null, 'five'), { code: 'insufficient_capacity' });
    assert.equal(pidOf('four'), pid);
    await small.release(first.key);
    await small.setPolicy(second, POLICY, null, 'five');
    await newPidOf('five');
    assert.equal(readProcessState(pid), undefined);
    assert.ok(await reaches(second));
    await small.release(second.key);
  } finally {
    await small.close();
  }
});

test('proxies of an earlier engine are ended, and those that are needed are started', async (t) => {
  const slot = await sandboxOf(t, 'one');
  await newPidOf('one');
  await network.close();
  const file = join(engine.options.runFolder, 'proxies', 'earlier.json');
  const earlier = spawn('sleep', ['1000']);
  t.after(() => earlier.kill('SIGKILL'));
  const ended = once(earlier, 'exit');
  await once(earlier, 'spawn');
  await recordProcess(file, earlier.pid, 1);
  await network.recover([{ ...keptAs(slot.key, POLICY), scope: 'one' }]);
  await ended;
  assert.ok(!existsSync(file));
  await newPidOf('one');
  assert.ok(await reaches(slot));
});

function uidOf(pid: number): number {
  return Number(/^Uid:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}
