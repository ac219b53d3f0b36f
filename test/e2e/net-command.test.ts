import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { Client, Sandbox } from '@svc/sdk';
import { BUSYBOX } from '../engine/start-engine.ts';
import { TestServer } from './start-server.ts';

const PROGRAM = resolve(import.meta.dirname, '../../svc');
let server: TestServer;

before(async () => {
  server = await TestServer.start({ args: ['--dev'] });
});
after(() => server.destroy());

interface Ended {
  readonly code: number | string | null | undefined;
  readonly output: string;
  readonly complaint: string;
}

function svc(...parameters: readonly string[]): Promise<Ended> {
  const env = { PATH: process.env['PATH'], HOME: '/nonexistent', SVC_API_URL: server.url };
  return new Promise((done) => {
    execFile(PROGRAM, parameters, { env }, (error, output, complaint) =>
      done({ code: error === null ? 0 : error.code, output: output.trim(), complaint }),
    );
  });
}

test('svc run takes rules, svc net explains them, and svc net set changes them for this run and the next', async () => {
  const rule = 'allow@domain=example.com:tcp:443,deny@any';
  const made = await svc(
    'run',
    '-d',
    '--name',
    'ruled',
    '--net',
    'none',
    '--net-rule',
    rule,
    BUSYBOX,
    'sleep',
    '1000',
  );
  assert.equal(made.code, 0, made.complaint);
  assert.deepEqual(await svc('net', 'explain', 'ruled', 'example.com:443'), {
    code: 0,
    output:
      'example.com:443/tcp is allowed by rule 0, allow:egress@domain=example.com:tcp:443, the first that fits; ' +
      'the sandbox has not resolved the name, so this holds for any public address that it leads to',
    complaint: '',
  });
  const denied = await svc('net', 'explain', 'ruled', '10.0.0.1:80/udp');
  assert.deepEqual(
    [denied.code, denied.output],
    [1, '10.0.0.1:80/udp is denied by rule 1, deny:egress@any, the first that fits'],
  );
  const set = await svc(
    'net',
    'set',
    'ruled',
    '--net-rule',
    'allow@10.0.0.0/8:udp',
    '--max-connections',
    '9',
  );
  assert.deepEqual([set.code, set.output], [0, 'ruled'], set.complaint);
  assert.equal((await svc('net', 'explain', 'ruled', '10.0.0.1:80/udp')).code, 0);
  assert.equal((await svc('restart', 'ruled')).code, 0);
  assert.equal((await svc('net', 'explain', 'ruled', '10.0.0.1:80/udp')).code, 0);
  const { id } = await Sandbox.connect('ruled', { client: new Client({ apiUrl: server.url }) });
  const { spec } = await server.engine.client.getSandbox(id);
  assert.equal(spec.network?.max_connections, 9);
  assert.equal(spec.network?.policy?.rules?.length, 1, 'what --net none said stays');
  assert.equal((await svc('net', 'explain', 'ruled', '8.8.8.8:443')).code, 1);
  assert.equal((await svc('net', 'set', 'ruled', '--net', 'public')).code, 0);
  assert.equal((await svc('net', 'set', 'ruled', '--net-rule', 'deny@9.9.9.9')).code, 0);
  assert.equal((await svc('net', 'explain', 'ruled', '8.8.8.8:443')).code, 0);
  assert.equal((await svc('net', 'explain', 'ruled', '9.9.9.9:443')).code, 1);
});

test('contradictory options are refused before a sandbox is made', async () => {
  for (const [words, complaint] of [
    [['create', '--name', 'x', '--net-rule', 'allow@example.com', BUSYBOX], /write domain=example\.com/],
    [['create', '--name', 'x', '--net', 'some', BUSYBOX], /public, private and host/],
    [['create', '--name', 'x', '--no-network', '--net', 'all', BUSYBOX], /cannot be used with/],
    [['net', 'set', 'ruled'], /Say what to change/],
    [['net', 'explain', 'ruled', 'example.com'], /Give HOST:PORT/],
  ] as const) {
    const ended = await svc(...words);
    assert.equal(ended.code, 2, words.join(' '));
    assert.match(ended.complaint, complaint);
  }
});
