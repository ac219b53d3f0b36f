import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readlinkSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { dirname } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { waitUntil } from '@svc/contract/testing';

const BINARY = fileURLToPath(new URL('../build/svc-host', import.meta.url));
const UID = 64_557;

/** Tries what a program could that was taken over, as root and as the user that it becomes. */
const TRY = `
  const { readdirSync, writeFileSync } = require('node:fs');
  const { spawnSync } = require('node:child_process');
  const { connect, createServer } = require('node:net');
  const attempt = (work) => { try { return work(); } catch (error) { return error.code; } };
  const before = { root: readdirSync('/'), etc: readdirSync('/etc'), written: ['/x', '/usr/x'].map((path) => attempt(() => writeFileSync(path, ''))) };
  process.setgroups([]); process.setgid(${UID}); process.setuid(${UID});
  const kill = attempt(() => process.kill(${process.pid}, 0));
  const mount = spawnSync('/usr/bin/mount', ['-t', 'tmpfs', 'none', '/usr']).status;
  const unshare = spawnSync('/usr/bin/unshare', ['--user', '/usr/bin/true']).status;
  const local = connect('/usr/socket').on('error', ({ code }) => {
    const server = createServer((socket) => socket.end('served')).listen(0, '127.0.0.1', () => {
      connect(server.address().port, '127.0.0.1').on('data', (data) => {
        console.log(JSON.stringify({ ...before, kill, mount, unshare, local: code, network: String(data), uid: process.getuid() }));
        process.exit();
      });
    });
  });`;

test('a program sees the paths that it is given, read-only, and serves connections as another user', () => {
  const node = dirname(process.execPath);
  const { stdout, stderr, status } = seclude(
    '1',
    '0',
    '3',
    '/usr',
    node,
    '/etc/hostname',
    process.execPath,
    '-e',
    TRY,
  );
  assert.equal(stderr, '');
  assert.equal(status, 0);
  const { root, etc, written, mount, unshare, ...rest } = JSON.parse(stdout) as Record<string, unknown>;
  const above = node.split('/')[1] ?? '';
  assert.deepEqual(root, [...new Set(['bin', 'etc', 'lib', 'lib64', 'sbin', 'usr', above])].toSorted());
  assert.deepEqual(etc, ['hostname'], 'a single file');
  assert.deepEqual(written, ['EROFS', 'EROFS']);
  assert.ok(mount !== 0 && unshare !== 0, 'it neither mounts nor makes namespaces');
  assert.deepEqual(rest, { kill: 'EPERM', local: 'ENOSYS', network: 'served', uid: UID });
});

test('without paths it sees the host, and has the filter all the same', () => {
  const { stdout } = seclude(
    '1',
    '0',
    '0',
    'grep',
    '-E',
    '^(Seccomp|NoNewPrivs|CapBnd):',
    '/proc/self/status',
  );
  assert.equal(stdout, 'CapBnd:\t00000000000000c4\nNoNewPrivs:\t1\nSeccomp:\t2\n');
});

const HOST_LINK = `t${process.pid}`;
const GATEWAY = '100.127.255.1';
const LINK = [HOST_LINK, '100.127.255.2', GATEWAY, '1500', '02:00:00:00:00:06'];

/** Tells its network: the namespace, its interfaces, and what it reaches at that port of the host, over loopback and over the link. */
const LOOK_AROUND = (port: number) => `
  const { readFileSync, readlinkSync } = require('node:fs');
  const { connect } = require('node:net');
  const reach = (address) => new Promise((resolve) => {
    const socket = connect(${port}, address, () => { socket.destroy(); resolve('connected'); });
    socket.on('error', ({ code }) => resolve(code));
  });
  const interfaces = readFileSync('/proc/net/dev', 'utf8').split('\\n').slice(2, -1).map((line) => line.split(':')[0].trim());
  Promise.all(['127.0.0.1', '${GATEWAY}'].map(reach)).then(([loopback, gateway]) => {
    const namespace = readlinkSync('/proc/self/ns/net');
    console.log(JSON.stringify({ namespace, interfaces: interfaces.sort(), loopback, gateway }));
  });`;

test('with a link a program has a network namespace of its own, and a link of that name is replaced', async (t) => {
  const server = createServer().listen(0, '0.0.0.0');
  t.after(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const left = spawnSync('ip', ['link', 'add', HOST_LINK, 'type', 'veth', 'peer', 'name', `${HOST_LINK}p`]);
  assert.equal(left.status, 0);
  t.after(() => spawnSync('ip', ['link', 'delete', HOST_LINK]));
  const { stdout, stderr } = seclude('0', '5', ...LINK, '0', process.execPath, '-e', LOOK_AROUND(port));
  assert.equal(stderr, '');
  const { namespace, ...rest } = JSON.parse(stdout) as Record<string, unknown>;
  assert.notEqual(namespace, readlinkSync('/proc/self/ns/net'));
  assert.deepEqual(rest, { interfaces: ['eth0', 'lo'], loopback: 'ECONNREFUSED', gateway: 'connected' });
  await waitUntil(() => !existsSync(`/sys/class/net/${HOST_LINK}`), 'the link ends with the program');
});

/** Opens a connection, then gives a socket an address. */
const BIND = `
  const { connect, createServer } = require('node:net');
  const server = createServer().on('error', ({ code }) => { console.log(code); process.exit(); });
  connect(9, '127.0.0.1').on('error', ({ code }) => {
    console.log(code);
    server.listen(0, '127.0.0.1', () => { console.log('listens'); process.exit(); });
  });`;

test('a program gives its sockets an address only where it chooses them', () => {
  for (const [chooses, outcome] of [
    ['1', 'listens'],
    ['0', 'ENOSYS'],
  ] as const)
    assert.equal(
      seclude(chooses, '0', '0', process.execPath, '-e', BIND).stdout,
      `ECONNREFUSED\n${outcome}\n`,
    );
});

test('an impossible request is an error, and no program is started', () => {
  const cases = [
    [['1', '0', '0'], /usage/, 2],
    [['1', '0'], /usage/, 2],
    [['2', '0', '0', 'true'], /usage/, 2],
    [['1', '0', '2', '/usr', 'true'], /usage/, 2],
    [['1', '2', 'v-1', '100.127.255.2', '0', 'true'], /usage/, 2],
    [['1', '5', ...LINK.slice(0, 4)], /usage/, 2],
    [['1', '5', ...LINK.with(1, 'nowhere'), '0', 'true'], /usage/, 2],
    [['1', '0', '1', '/nowhere', 'true'], /cannot copy a mount: No such file/, 126],
    [['1', '0', '0', '/nowhere/program'], /cannot execute \/nowhere\/program: No such file/, 126],
  ] as const;
  for (const [parameters, message, code] of cases) {
    const { stderr, status } = seclude(...parameters);
    assert.match(stderr, message);
    assert.equal(status, code);
  }
});

function seclude(...parameters: readonly string[]) {
  return spawnSync(BINARY, ['--seclude', ...parameters], {
    encoding: 'utf8',
    env: { PATH: '/usr/bin:/bin' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}
