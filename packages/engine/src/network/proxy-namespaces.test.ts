import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readdirSync, readlinkSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { BUILT_SVC_HOST } from '../host/svc-host-calls.ts';
import { readProcessState } from '../host/process-state.ts';
import { resolvePolicy } from '../policy/resolve-policy.ts';
import { command, inNamespace } from '../testing/command.ts';
import type { Internet } from '../testing/internet.ts';
import { probe, probeBriefly, type Attempt } from '../testing/probe.ts';
import { likeProcess, networkOf, newProxyOf, proxyOf, succeeds } from '../testing/proxy-process.ts';
import type { TestEngine } from '../testing/test-engine.ts';
import { withInternet } from '../testing/with-internet.ts';
import type { LinuxNetwork } from './linux-network.ts';
import { keptAs } from './network.suite.ts';
import type { Slot } from './network.ts';
import { proxyGroup } from './proxy-routing.ts';
import { proxyLinkPrefix } from './ruleset.ts';

let internet: Internet;
let engine: TestEngine;
let network: LinuxNetwork;

withInternet(98, (connected) => {
  ({ internet, engine, network } = connected);
});

const NAME = 'public.example';
/** What only a name decides goes through a proxy. */
const POLICY = resolvePolicy({
  policy: { rules: [{ direction: 'egress', action: 'allow', destination: { domain: NAME } }] },
});

async function sandboxOf(t: TestContext, scope: string, inNetwork = network): Promise<Slot> {
  const slot = await inNetwork.acquire('public', AbortSignal.timeout(100_000));
  t.after(() => inNetwork.release(slot.key));
  await inNetwork.setPolicy(slot, POLICY, null, scope);
  return slot;
}

function proxyLinks(): readonly string[] {
  const prefix = proxyLinkPrefix(engine.options.instance);
  const names = readdirSync('/sys/class/net').filter((name) => name.startsWith(prefix));
  return names.toSorted((one, other) => one.localeCompare(other));
}

/** The address of a proxy's end of its link. */
async function addressOf(pid: number): Promise<string> {
  const shown = await command(...inNamespace(networkOf(pid), 'ip', '-4', '-o', 'address', 'show', 'eth0'));
  const address = /inet ([\d.]+)/.exec(shown)?.[1];
  assert.ok(address);
  return address;
}

async function listening(t: TestContext, place: { port: number; host: string } | string): Promise<Server> {
  const server = createServer((socket) => socket.on('error', () => undefined).end('reached'));
  server.listen(place);
  t.after(() => server.close());
  await once(server, 'listening');
  return server;
}

/** Answers connections to port 4711 in the namespace with `here`. */
async function listenInside(t: TestContext, namespace: string): Promise<void> {
  const program = `require('node:net').createServer((socket) => socket.end('here')).listen(4711, '0.0.0.0', () => console.log('ready'))`;
  const line = inNamespace(namespace, process.execPath, '-e', program);
  const child = spawn(line[0], line.slice(1), { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
}

async function saysOverAbstract(name: string, program: string, ...words: readonly string[]): Promise<string> {
  const script = `require('node:net').connect('\\0${name}').on('data', (data) => console.log(String(data))).on('error', ({ code }) => console.log(code))`;
  return (await command(program, ...words, process.execPath, '-e', script)).trim();
}

test('each scope has a network namespace of its own, with one link to that of the host', async (t) => {
  await sandboxOf(t, 'one');
  await sandboxOf(t, 'two');
  const pids = [await newProxyOf(engine, 'one'), await newProxyOf(engine, 'two')];
  const namespaces = ['self', ...pids].map((pid) => readlinkSync(`/proc/${pid}/ns/net`));
  assert.equal(new Set(namespaces).size, 3);
  assert.equal(proxyLinks().length, 2);
  for (const pid of pids) {
    const shown = await command(...inNamespace(networkOf(pid), 'ip', '-o', 'link'));
    assert.deepEqual(
      new Set([...shown.matchAll(/^\d+: (\w+)/gm)].map(([, name]) => name)),
      new Set(['eth0', 'lo']),
    );
  }
});

test('from a proxy the internet is reached, and neither the loopback nor abstract sockets of the host', async (t) => {
  await sandboxOf(t, 'one');
  const namespace = networkOf(await newProxyOf(engine, 'one'));
  const { port } = (await listening(t, { port: 0, host: '127.0.0.1' })).address() as AddressInfo;
  const tcp = (host: string, at: number): Attempt => ({ kind: 'tcp', host, port: at });
  const [open] = await probe(namespace, tcp(internet.publicAddress, 8080));
  assert.match(open ?? '', /^you are/);
  const [own] = await probe('/proc/self/ns/net', tcp('127.0.0.1', port));
  assert.equal(own, 'reached', 'on the host it is reached');
  const [loopback] = await probeBriefly(namespace, tcp('127.0.0.1', port));
  assert.match(loopback ?? '', /ECONNREFUSED/);
  const name = `svc-proxy-${process.pid}`;
  await listening(t, `\0${name}`);
  assert.equal(await saysOverAbstract(name, 'env'), 'reached', 'on the host it is reached');
  assert.equal(await saysOverAbstract(name, 'nsenter', `--net=${namespace}`), 'ECONNREFUSED');
});

test('a proxy, a sandbox and another proxy do not reach each other', async (t) => {
  const slot = await sandboxOf(t, 'one');
  await sandboxOf(t, 'two');
  const [first, second] = [await newProxyOf(engine, 'one'), await newProxyOf(engine, 'two')];
  const places = [networkOf(first), networkOf(second), slot.networkNamespace];
  const addresses = [await addressOf(first), await addressOf(second), slot.link?.address ?? ''];
  for (const place of places) await listenInside(t, place);
  for (const [from, place] of places.entries()) {
    const attempts = addresses.map((host): Attempt => ({ kind: 'tcp', host, port: 4711 }));
    const outcomes = await probeBriefly(place, ...attempts);
    const reached = outcomes.flatMap((outcome, to) => (outcome === 'here' ? [to] : []));
    assert.deepEqual(reached, [from], `from ${from}: ${outcomes.join(', ')}`);
  }
});

/** Ends the listening of an inherited socket, and connects it. Exits with 0 when it is connected. */
const CONNECT_LISTENER = `
  use Socket;
  open(my $socket, '+<&=', 4) or exit 3;
  alarm 1;
  shutdown($socket, 2) or exit 4;
  exit(connect($socket, pack_sockaddr_in($ARGV[1], inet_aton($ARGV[0]))) ? 0 : 5);`;

test('a listening socket that a proxy has connects nowhere, nor does one of its group on the host', async (t) => {
  const { port } = (await listening(t, { port: 0, host: '0.0.0.0' })).address() as AddressInfo;
  const slot = await sandboxOf(t, 'one');
  const gateway = slot.link?.gateway ?? '';
  const connects = (group: number, host: string, at: number) => {
    const listen = [BUILT_SVC_HOST, '--listen', gateway, '4', String(group)];
    return succeeds(...listen, 'perl', '-e', CONNECT_LISTENER, host, String(at));
  };
  const ours = proxyGroup(engine.options.instance);
  const opens = (group: number, host: string, at: number) =>
    succeeds(
      'setpriv',
      `--regid=${group}`,
      '--clear-groups',
      'timeout',
      '1',
      'bash',
      '-c',
      `echo > /dev/tcp/${host}/${at}`,
    );
  for (const host of ['127.0.0.1', gateway]) {
    assert.ok(await connects(0, host, port), `${host}: one of another group does`);
    assert.ok(!(await connects(ours, host, port)), host);
  }
  for (const [host, at] of [
    ['127.0.0.1', port],
    [internet.publicAddress, 8080],
  ] as const) {
    assert.ok(await opens(0, host, at), `${host}: one of another group does`);
    assert.ok(!(await opens(ours, host, at)), host);
  }
});

test('a killed proxy is replaced in a new namespace, and one link remains', async (t) => {
  await sandboxOf(t, 'one');
  const pid = await newProxyOf(engine, 'one');
  // Keeps the namespace, and its link, beyond the end of the proxy.
  const kept = openSync(networkOf(pid), 'r');
  t.after(() => closeSync(kept));
  const before = readlinkSync(networkOf(pid));
  const links = proxyLinks();
  process.kill(pid, 'SIGKILL');
  const next = await newProxyOf(engine, 'one', pid);
  assert.notEqual(readlinkSync(networkOf(next)), before);
  assert.deepEqual(proxyLinks(), links, 'of the same name');
  const attempt: Attempt = { kind: 'tcp', host: internet.publicAddress, port: 8080 };
  assert.match((await probe(networkOf(next), attempt))[0] ?? '', /^you are/);
});

test('leftovers of the proxies of a killed engine are removed by the next one, and their sandboxes get new ones', async (t) => {
  await network.close();
  t.after(() => network.recover([]));
  const { key, pids } = await runAndKillEngine();
  const links = proxyLinks();
  assert.equal(links.length, 2);
  // As of a proxy that had made it and was not recorded yet.
  const left = `${proxyLinkPrefix(engine.options.instance)}left`;
  await command('ip', 'link', 'add', left, 'type', 'veth', 'peer', 'name', `${left.slice(0, -2)}r`);
  const [first = 0, second = 0] = pids;
  process.kill(second, 'SIGKILL');
  assert.ok(readProcessState(first), 'a proxy outlives its engine');
  await network.recover([{ ...keptAs(key, POLICY), scope: 'one' }]);
  t.after(() => network.release(key));
  await newProxyOf(engine, 'one', first);
  await waitUntil(() => readProcessState(first) === undefined, 'the earlier proxy is ended');
  assert.equal(proxyOf(engine, 'two'), null);
  assert.ok([left, ...links].every((name) => !existsSync(`/sys/class/net/${name}`)));
  assert.equal(proxyLinks().length, 1);
  await network.release(key);
  await network.close();
  assert.deepEqual(await engine.traces(), []);
});

/** An engine of its own process with a sandbox in each of two scopes, killed when their proxies run. */
async function runAndKillEngine(): Promise<{ readonly key: string; readonly pids: readonly number[] }> {
  const url = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
  const program = `
    import { LinuxNetwork } from ${url('linux-network.ts')};
    import { SvcHostCalls } from ${url('../host/svc-host-calls.ts')};
    import { resolvePolicy } from ${url('../policy/resolve-policy.ts')};
    const logger = { info() {}, warn() {} };
    const network = new LinuxNetwork({ ...${JSON.stringify(engine.options)}, hostCalls: new SvcHostCalls(), logger });
    await network.recover([]);
    const policy = resolvePolicy({ policy: { rules: [{ direction: 'egress', action: 'allow', destination: { domain: '${NAME}' } }] } });
    const keys = [];
    for (const scope of ['one', 'two']) {
      const slot = await network.acquire('public', AbortSignal.timeout(60_000));
      await network.setPolicy(slot, policy, null, scope);
      keys.push(slot.key);
    }
    process.stdout.write(keys[0] + '\\n');
  `;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const pids = [await newProxyOf(engine, 'one'), await newProxyOf(engine, 'two')];
  child.kill('SIGKILL');
  await exited;
  return { key: line.toString().trim(), pids };
}

test('no datagram leaves the namespace of a proxy, and the limit of packets per sandbox is not for it', async (t) => {
  await sandboxOf(t, 'one');
  const pid = await newProxyOf(engine, 'one');
  const as = likeProcess(pid);
  assert.ok(await succeeds(...as, 'bash', '-c', `echo > /dev/tcp/${internet.publicAddress}/8080`));
  const asked: Attempt = { kind: 'dns', server: internet.resolver, name: NAME, transport: 'udp' };
  assert.deepEqual(await probe('/proc/self/ns/net', asked), [internet.publicAddress], 'the host is answered');
  assert.deepEqual(await probeBriefly(networkOf(pid), asked), ['silence']);
  const [link = ''] = proxyLinks();
  const mentions = (await engine.table()).split('\n').filter((line) => line.includes(`"${link}"`));
  assert.equal(mentions.length, 1, 'one element, in the set of links');
});
