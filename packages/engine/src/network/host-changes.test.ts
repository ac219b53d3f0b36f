import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chainsThatDrop, findFirewallObstacles } from './host-changes.ts';

test('chains of others that drop forwarded or incoming packets by default are named, and ours are not', () => {
  const chain = (table: string, hook: string, policy: string) => ({
    chain: {
      family: 'ip',
      table,
      name: hook.toUpperCase(),
      handle: 1,
      type: 'filter',
      hook,
      prio: 0,
      policy,
    },
  });
  const listing = {
    nftables: [
      { metainfo: { version: '1.0.6' } },
      chain('filter', 'forward', 'drop'),
      chain('filter', 'input', 'accept'),
      chain('filter', 'output', 'drop'),
      chain('svc_1234', 'forward', 'drop'),
      { chain: { family: 'ip', table: 'filter', name: 'DOCKER', handle: 2 } },
    ],
  };
  assert.deepEqual(chainsThatDrop(listing, 'svc_1234'), ['ip filter FORWARD']);
});

test('the listing of this host can be read', async () => {
  assert.ok(Array.isArray(await findFirewallObstacles('svc_none')));
});
