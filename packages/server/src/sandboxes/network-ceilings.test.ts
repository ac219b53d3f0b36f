import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { FakeOrchestrator } from '../testing/fake-orchestrator.ts';
import { startWithPeople } from '../testing/people.ts';
import { body, startHealthy } from '../testing/sandboxes.ts';
import { makeFolder, type TestServer } from '../testing/test-server.ts';
import type { NetworkCeilings } from './network-ceilings.ts';

const allow = (destination: object) => ({ direction: 'egress', action: 'allow', destination });
const NEAR = { policy: { rules: [allow({ cidr: '10.8.1.0/24' })] } };
const FAR = { policy: { rules: [allow({ group: 'public' }), allow({ cidr: '10.9.0.0/24' })] } };
const CEILINGS: NetworkCeilings = {
  installation: ['public'],
  organizations: new Map([['default', ['public', '10.8.0.0/16']]]),
};
const start = (t: TestContext, networkCeilings: NetworkCeilings, more: object = {}) =>
  startHealthy(t, { restSettings: { networkCeilings }, ...more });

async function run(server: TestServer, name: string, network: object): Promise<string> {
  const made = await server.rest('POST', '/sandboxes?start=true&wait_for=running', {
    body: body(name, { network }),
  });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  return made.body.id;
}

test('a policy beyond the ceiling of its organization is refused by the rule, at create and by a change', async (t) => {
  const server = await start(t, CEILINGS);
  for (const query of ['', '?start=true']) {
    const { status, body: answer } = await server.rest('POST', `/sandboxes${query}`, {
      body: body('far', { network: FAR }),
    });
    assert.deepEqual([status, answer.error.code], [403, 'network_ceiling_exceeded']);
    assert.equal(answer.error.details.field, 'network.policy.rules[1]');
    assert.deepEqual(answer.error.details.ceiling, ['public', '10.8.0.0/16']);
  }
  const id = await run(server, 'near', NEAR);
  assert.deepEqual(server.orchestrator.requestOf(id).networkCeiling, ['public', '10.8.0.0/16']);
  const change = await server.rest('PATCH', `/sandboxes/${id}/network`, { body: FAR });
  assert.deepEqual([change.status, change.body.error.code], [403, 'network_ceiling_exceeded']);
  assert.deepEqual((await server.orchestrator.get(id))?.network, NEAR);
});

test('capabilities show the ceiling of the organization of the caller', async (t) => {
  const networkCeilings = { ...CEILINGS, organizations: new Map([['acme', ['10.8.0.0/16']]]) };
  const people = await startWithPeople(t, { restSettings: { networkCeilings } });
  for (const slug of ['acme', 'other']) await people.organization(slug, {});
  const ceilingOf = async (slug: string) =>
    (await people.server.rest('GET', '/capabilities', { key: await people.apiKey(slug) })).body.network;
  assert.deepEqual(await ceilingOf('acme'), { ceiling: ['10.8.0.0/16'] });
  assert.deepEqual(await ceilingOf('other'), { ceiling: ['public'] });
});

test('existing sandboxes are held to a lowered ceiling, and show it', async (t) => {
  const folder = await makeFolder(t);
  const orchestrator = new FakeOrchestrator();
  const first = await start(t, { ...CEILINGS, installation: ['all'] }, { folder: folder, orchestrator });
  const id = await run(first, 'near', NEAR);
  await first.close();
  const lowered = await start(
    t,
    { installation: ['public'], organizations: new Map() },
    { folder, orchestrator },
  );
  await waitUntil(async () => (await orchestrator.get(id))?.networkCeiling?.join() === 'public');
  const question = { host: '10.8.1.1', port: 80 };
  const { body: reported } = await lowered.rest('POST', `/sandboxes/${id}/network/explain`, {
    body: question,
  });
  assert.deepEqual([reported.action, reported.decided_by, reported.rule], ['deny', 'ceiling', null]);
});
