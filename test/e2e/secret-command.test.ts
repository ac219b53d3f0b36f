import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { BUSYBOX } from '../engine/start-engine.ts';
import { TestServer } from './start-server.ts';
import { svc as svcOf } from './web-fixture.ts';

const HOST = '*.example.com';
const VALUE = 'correct-horse';
let server: TestServer;

before(async () => {
  server = await TestServer.start({ args: ['--dev'] });
});
after(() => server.destroy());

const svc = (input: string, ...parameters: readonly string[]) => svcOf(server, input, ...parameters);

test('svc secret keeps a value that it reads from stdin, and shows names alone', async () => {
  const set = await svc(`${VALUE}\n`, 'secret', 'set', 'API_KEY', '--host', HOST);
  assert.deepEqual([set.code, set.output], [0, 'API_KEY'], set.complaint);
  assert.equal((await svc('', 'secret', 'set', 'API_KEY', '--host', HOST)).code, 2);
  const listed = await svc('', 'secret', 'ls', '-o', 'json');
  assert.deepEqual(
    JSON.parse(listed.output).map((secret: { name: string; allowed_hosts: unknown }) => [
      secret.name,
      secret.allowed_hosts,
    ]),
    [['API_KEY', [{ type: 'wildcard', value: HOST }]]],
  );
  assert.ok(!listed.output.includes(VALUE));
  assert.match((await svc('', 'secret', 'ls')).output, /^NAME +HOSTS .*\nAPI_KEY +\*\.example\.com /);
  const removed = await svc('', 'secret', 'rm', 'API_KEY');
  assert.deepEqual([removed.code, removed.output], [0, 'API_KEY'], removed.complaint);
  assert.equal((await svc('', 'secret', 'rm', 'API_KEY')).code, 1);
});

test('a secret is set with the hosts that may have it, and with no others', async () => {
  for (const hosts of [[], ['--host', '*'], ['--host', 'a b']])
    assert.equal((await svc(VALUE, 'secret', 'set', 'OTHER_KEY', ...hosts)).code, 2, hosts.join(' '));
  const set = await svc(VALUE, 'secret', 'set', 'OTHER_KEY', '--host', 'a.example', '--host', HOST);
  assert.equal(set.code, 0, set.complaint);
  const ask = (host: string) =>
    svc('', 'create', '--name', 'narrow', '--secret', `OTHER_KEY@${host}`, BUSYBOX);
  for (const host of ['evil.example', '*', '*.a.example']) {
    const refused = await ask(host);
    assert.match(refused.complaint, /allowed_hosts\[0\].*a\.example.*svc secret set OTHER_KEY --host/s, host);
  }
  assert.equal((await ask('a.example,deep.example.com')).code, 0);
});

test('a secret that the organization does not have is refused by name, with the command that sets it', async () => {
  const refused = await svc('', 'create', '--name', 'none', '--secret', 'NO_KEY@api.example', BUSYBOX);
  assert.notEqual(refused.code, 0);
  assert.match(refused.complaint, /svc secret set NO_KEY|network\.secrets/);
});
