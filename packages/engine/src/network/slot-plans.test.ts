import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Network } from '@svc/contract';
import { PlatformError } from '@svc/contract/errors';
import { parseAddressPool } from './address-pool.ts';
import { readRequestedInterface } from './requested-interface.ts';
import { parseIpv6Pool } from './ipv6-pool.ts';
import { SlotPlans } from './slot-plans.ts';

const records = { userPath: (key: string) => `/u/${key}`, networkPath: (key: string) => `/n/${key}` };

/** Of an engine whose host ids are enough for eight sandboxes, and whose pool for 65,533. */
function plansOfEight(): SlotPlans {
  const pool = parseAddressPool('172.20.0.0/16');
  const ipv6Pool = parseIpv6Pool('fd12:3456:789a::/96', 'abcd', pool.gateway);
  const firstHostId = 2 ** 32 - 9 * 65_536;
  return new SlotPlans({ pool, ipv6Pool, records, instance: 'abcd', firstHostId });
}

function requested(given: NonNullable<Network['interface']>) {
  const made = readRequestedInterface({ interface: given });
  assert.ok(made);
  return made;
}

test('addresses beyond the host ids are refused with the range of available ones', () => {
  const plans = plansOfEight();
  for (const given of [
    { ipv4_address: '172.20.0.10' },
    { ipv4_address: '172.20.200.1' },
    { ipv4_pool: '172.20.1.0/24' },
    { ipv6_address: 'fd12:3456:789a::ac14:c801' },
    { ipv6_pool: 'fd12:3456:789a::ac14:c800/120' },
  ])
    assert.throws(
      () => plans.check(requested(given)),
      (error) =>
        PlatformError.is(error, 'invalid_sandbox_config') &&
        error.details?.['field'] === `network.interface.${Object.keys(given)[0]}` &&
        error.message.includes('172.20.0.2 to 172.20.0.9'),
      JSON.stringify(given),
    );
});

test('every announced address can be requested, and a range yields its available ones', () => {
  const plans = plansOfEight();
  const addressOf = (given: NonNullable<Network['interface']>) =>
    plans.plan('public', requested(given)).slot.link?.address ?? '';
  assert.equal(addressOf({ ipv4_address: '172.20.0.9' }), '172.20.0.9');
  const range = { ipv4_pool: '172.20.0.0/24' };
  const had = Array.from({ length: 7 }, () => addressOf(range)).toSorted();
  assert.deepEqual(
    had,
    ['2', '3', '4', '5', '6', '7', '8'].map((last) => `172.20.0.${last}`),
  );
  assert.ok(!plans.isFree(requested(range)));
  assert.throws(() => addressOf(range), /All addresses of 172\.20\.0\.0\/24 are in use/);
});

test('proxies have addresses that no sandbox can have, where the pool is larger than the host ids', () => {
  const plans = plansOfEight();
  for (let planned = 0; planned < 100; planned++) {
    const { index, link } = plans.planProxyLink();
    assert.ok(index >= 65_533 - 1024, link.address);
    assert.match(link.hostInterface, /^vabcd--[a-z0-9]{4}$/);
    assert.equal(link.ipv6?.gateway, 'fd12:3456:789a::ac14:1');
  }
  for (let planned = 0; planned < 8; planned++) plans.plan('public', null);
});

test('in a small pool proxies and sandboxes share the addresses, and none is given twice', () => {
  const pool = parseAddressPool('172.20.0.0/29');
  const plans = new SlotPlans({ pool, ipv6Pool: null, records, instance: 'abcd', firstHostId: 2 ** 31 });
  const last = plans.planProxyLink();
  assert.equal(last.link.address, '172.20.0.6', 'the last of the pool');
  const others = [
    plans.plan('public', null).slot.link,
    plans.planProxyLink().link,
    plans.plan('public', null).slot.link,
  ];
  const addresses = [last.link, ...others, plans.planProxyLink().link].map((link) => link?.address);
  assert.equal(new Set(addresses).size, 5);
  assert.throws(() => plans.planProxyLink(), { code: 'insufficient_capacity' });
  assert.throws(() => plans.plan('public', null), { code: 'insufficient_capacity' });
  plans.giveBack(last);
  assert.equal(plans.planProxyLink().link.address, '172.20.0.6');
});
