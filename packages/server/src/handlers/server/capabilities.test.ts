import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTestServer } from '../../testing/test-server.ts';
import { startWithPeople } from '../../testing/people.ts';

test('capabilities name every class of isolation with a reason, and the limits of requests', async (t) => {
  const people = await startWithPeople(t);
  const member = await people.person('member');
  await people.organization('acme', { member });
  const { server } = people;
  const { status, body } = await server.rest('GET', '/capabilities', { key: await people.apiKey('acme') });
  assert.equal(status, 200);
  assert.equal(body.version, 'fake');
  assert.deepEqual(body.isolation, {
    default: 'container',
    classes: [
      { name: 'microvm', runtime: null, is_available: false, reason: 'nothing on this host offers it' },
      { name: 'gvisor', runtime: null, is_available: false, reason: 'nothing on this host offers it' },
      { name: 'container', runtime: 'fake', is_available: true, reason: 'version fake' },
    ],
  });
  assert.deepEqual([body.ssh, body.previews], [null, null]);
  assert.ok(body.features.includes('audit_chain'));
  assert.deepEqual(body.limits, {
    default_page_size: 20,
    max_page_size: 100,
    max_body_bytes: 2 * 1024 * 1024,
    max_metrics_range_secs: 604_800,
    min_metrics_step_secs: 5,
  });
  assert.deepEqual((await server.rest('GET', '/orgs/acme/capabilities', { key: member.key })).body, body);
});

test('capabilities say where the SSH gateway and the previews are, and how the gateway is known', async (t) => {
  const place = { port: 5522, hostKey: 'ssh-ed25519 AAAA', fingerprint: 'SHA256:x' };
  const previews = { domain: 'p.test', scheme: 'http', port: null } as const;
  const server = await startTestServer(t, { ssh: () => place, previews });
  const { body } = await server.rest('GET', '/capabilities');
  assert.deepEqual(body.ssh, { port: 5522, host_key: 'ssh-ed25519 AAAA', fingerprint: 'SHA256:x' });
  const port = Number(new URL(server.url).port);
  assert.deepEqual(body.previews, { domain: 'p.test', scheme: 'http', port, is_open: false });
});

test('capabilities need the engine and a credential', async (t) => {
  const people = await startWithPeople(t);
  await people.organization('acme', {});
  const key = await people.apiKey('acme');
  people.server.orchestrator.goAway();
  const { status, body } = await people.server.rest('GET', '/capabilities', { key });
  assert.deepEqual([status, body.error.code], [502, 'orchestrator_unreachable']);
  assert.equal((await people.server.rest('GET', '/capabilities')).status, 401);
});
