import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const BINARY = fileURLToPath(new URL('../build/svc-host', import.meta.url));
/** Accepts nothing; tells what it was given: the address, its limit on core files and what a core file would hold. */
const LOOK = `
  const { createServer } = require('node:net');
  const read = (name) => require('node:fs').readFileSync('/proc/self/' + name, 'utf8');
  const server = createServer().listen({ fd: 4 }, () => {
    const { address, port } = server.address();
    console.log(JSON.stringify({ address, hasPort: port > 0, more: process.argv[1],
      core: /core file size +(\\S+)/.exec(read('limits'))[1], filter: read('coredump_filter').trim() }));
    server.close();
  });`;

test('a program is handed a socket on the address, and may not leave core files', () => {
  const { stdout, stderr, status } = listen('127.0.0.7', '4', '0', process.execPath, '-e', LOOK, 'argument');
  assert.equal(stderr, '');
  assert.partialDeepStrictEqual(JSON.parse(stdout), {
    address: '127.0.0.7',
    hasPort: true,
    core: '1',
    more: 'argument',
  });
  assert.equal(status, 0);
});

test('where core files are forbidden already, as under sudo, the program starts, and a dump would hold no memory', () => {
  // Without the capability that raises hard limits, and not root: all that is left is what binding the socket takes.
  const unprivileged = ['--reuid', '64556', '--clear-groups', '--inh-caps', '-all,+net_admin'];
  const command = ['--core=0:0', 'setpriv', ...unprivileged, '--ambient-caps', '-all,+net_admin', '--'];
  const { stdout, stderr } = spawnSync(
    'prlimit',
    [...command, BINARY, '--listen', '127.0.0.7', '4', '0', process.execPath, '-e', LOOK],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe', 'pipe'] },
  );
  assert.equal(stderr, '');
  assert.partialDeepStrictEqual(JSON.parse(stdout), {
    address: '127.0.0.7',
    core: '0',
    filter: '00000000',
  });
});

test('an impossible request is an error, and no program is started', () => {
  const cases = [
    [['127.0.0.7', '4', '0'], /usage/, 2],
    [['not an address', '4', '0', 'true'], /listen: Invalid argument/, 1],
    [['192.0.2.1', '4', '0', '/nowhere/program'], /\/nowhere\/program: No such file/, 1],
    [['127.0.0.7', '2', '0', 'true'], /descriptor: Invalid argument/, 1],
    [['127.0.0.7', '3', '0', 'true'], /descriptor: Device or resource busy/, 1],
    [['127.0.0.7', '4', 'root', 'true'], /group: Invalid argument/, 1],
  ] as const;
  for (const [parameters, message, code] of cases) {
    const { stderr, status } = listen(...parameters);
    assert.match(stderr, message);
    assert.equal(status, code);
  }
});

function listen(...parameters: readonly string[]) {
  return spawnSync(BINARY, ['--listen', ...parameters], {
    encoding: 'utf8',
    env: {},
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
}
