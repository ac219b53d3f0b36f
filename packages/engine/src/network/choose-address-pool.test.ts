import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { PlatformError } from '@svc/contract/errors';
import { chooseAddressPool, firstFreePool } from './choose-address-pool.ts';

const candidates = ['172.16.0.0/16', '172.17.0.0/16', '172.18.0.0/16'];
const route = (base: string, prefixLength: number) => ({ base, prefixLength });

test('a pool that is routed, in part or as a whole, is passed over, and a default route takes none', () => {
  assert.equal(firstFreePool(candidates, 1, [route('0.0.0.0', 0)]), '172.17.0.0/16');
  assert.equal(
    firstFreePool(candidates, 1, [route('172.17.0.1', 32), route('172.18.4.0', 24)]),
    '172.16.0.0/16',
  );
});

test('when no pool is left the error says what to do', () => {
  assert.throws(
    () => firstFreePool(candidates, 0, [route('172.16.0.0', 12)]),
    (error) => PlatformError.is(error, 'unavailable') && error.message.includes('name a free one yourself'),
  );
});

test('an engine gets the same pool again after networks were added to the host', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-pool-'));
  t.after(() => rm(folder, { recursive: true }));
  const first = await chooseAddressPool(join(folder, 'run'), 'abcdef01');
  assert.match(first, /^172\.\d+\.0\.0\/16$/);
  assert.equal(await chooseAddressPool(join(folder, 'run'), '00000000'), first);
});
