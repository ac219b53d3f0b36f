import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startWithPeople } from './test-people.ts';

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

test('capabilities need the engine and a credential', async (t) => {
  const people = await startWithPeople(t);
  await people.organization('acme', {});
  const key = await people.apiKey('acme');
  people.server.orchestrator.goAway();
  const { status, body } = await people.server.rest('GET', '/capabilities', { key });
  assert.deepEqual([status, body.error.code], [502, 'orchestrator_unreachable']);
  assert.equal((await people.server.rest('GET', '/capabilities')).status, 401);
});
