import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Network } from '@svc/contract';
import { resolvePolicy } from '../policy/resolve-policy.ts';
import { FakeNetwork } from '../testing/fake-network.ts';
import { replaceNetwork } from './change-network.ts';
import type { EngineRecord } from './record.ts';

// Only the network of a record is looked at.
const recordOf = (network: Network) => ({
  record: { spec: { network } } as unknown as EngineRecord,
  values: {},
});
const OPEN: Network = { policy: { default_egress: 'allow' } };
const CLOSED: Network = { policy: { default_egress: 'deny' } };

async function start() {
  const network = new FakeNetwork();
  await network.recover([]);
  const slot = await network.acquire('public', AbortSignal.timeout(10_000));
  await network.setPolicy(slot, resolvePolicy(OPEN));
  return { network, slot };
}

test('the new policy is in force when it is saved', async () => {
  const { network, slot } = await start();
  let policyWhenSaved: unknown;
  await replaceNetwork(network, slot, [recordOf(OPEN), recordOf(CLOSED)], async () => {
    policyWhenSaved = network.policyOf(slot.key);
  });
  assert.deepEqual(policyWhenSaved, resolvePolicy(CLOSED));
  assert.deepEqual(network.policyOf(slot.key), resolvePolicy(CLOSED));
});

test('the old policy is restored when the new one cannot be saved', async () => {
  const { network, slot } = await start();
  const full = () => Promise.reject(new Error('no space left'));
  await assert.rejects(replaceNetwork(network, slot, [recordOf(OPEN), recordOf(CLOSED)], full), /no space/);
  assert.deepEqual(network.policyOf(slot.key), resolvePolicy(OPEN));
});

test('a change that fails is not saved', async () => {
  const { slot } = await start();
  const broken = new FakeNetwork({
    beforeCall: (operation) => {
      if (operation === 'setPolicy') throw new Error('nft failed');
    },
  });
  let isSaved = false;
  const save = async () => void (isSaved = true);
  await assert.rejects(replaceNetwork(broken, slot, [recordOf(OPEN), recordOf(CLOSED)], save), /nft failed/);
  assert.equal(isSaved, false);
  await replaceNetwork(broken, null, [recordOf(OPEN), recordOf(CLOSED)], save);
  assert.equal(isSaved, true, 'of one that does not run');
});
