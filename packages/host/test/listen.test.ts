import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const BINARY = fileURLToPath(new URL('../build/svc-host', import.meta.url));
/** Accepts nothing; tells what it was given: its limit on core files and whether others' connections may come. */
const LOOK = `
  const { createServer } = require('node:net');
  const limits = require('node:fs').readFileSync('/proc/self/limits', 'utf8');
  const server = createServer().listen({ fd: 4 }, () => {
    const { address, port } = server.address();
    console.log(JSON.stringify({ address, hasPort: port > 0, core: /core file size +(\\S+)/.exec(limits)[1], more: process.argv[1] }));
    server.close();
  });`;

test('a program is handed a socket on the address, and may not leave core files', () => {
  const { stdout, stderr, status } = listen('127.0.0.7', '4', process.execPath, '-e', LOOK, 'argument');
  assert.equal(stderr, '');
  assert.deepEqual(JSON.parse(stdout), { address: '127.0.0.7', hasPort: true, core: '1', more: 'argument' });
  assert.equal(status, 0);
});

test('what cannot be is said, and no program is started', () => {
  const cases = [
    [['127.0.0.7', '4'], /usage/, 2],
    [['not an address', '4', 'true'], /listen: Invalid argument/, 1],
    [['192.0.2.1', '4', '/nowhere/program'], /\/nowhere\/program: No such file/, 1],
    [['127.0.0.7', '2', 'true'], /descriptor: Invalid argument/, 1],
    [['127.0.0.7', '3', 'true'], /descriptor: Device or resource busy/, 1],
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
