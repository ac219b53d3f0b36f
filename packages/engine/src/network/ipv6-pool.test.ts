import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cidr } from '../policy/address.ts';
import { clientOf } from '../policy/client-address.ts';
import { parseIpv6Pool } from './ipv6-pool.ts';

test('an address of the pool ends with the IPv4 address, and leads back to it', () => {
  const pool = parseIpv6Pool('fd12:3456:789a::/96', 'a1b2c3d4', '172.20.0.1');
  assert.equal(pool.gateway, 'fd12:3456:789a::ac14:1');
  assert.equal(clientOf(pool.addressOf('172.20.0.7')), '172.20.0.7');
  assert.equal(pool.ipv4RangeOf(cidr('fd12:3456:789a::ac14:400/120')), '172.20.4.0/24');
  assert.equal(pool.ipv4RangeOf(cidr('fd12:3456:789b::ac14:400/120')), null);
  assert.equal(pool.ipv4RangeOf(cidr('fd12:3456::/32')), null);
  assert.equal(parseIpv6Pool('auto', 'a1b2c3d4', '10.0.0.1').gateway, 'fd5c:a1b2:c3d4::a00:1');
});

test('a pool that is none is refused with the option', () => {
  for (const text of [
    '',
    'on',
    '10.0.0.0/8',
    'fd12::/64',
    'fd12::1/96',
    'fe80::/96',
    'ff02::/96',
    '::ffff:0:0/96',
  ])
    assert.throws(() => parseIpv6Pool(text, 'a1b2c3d4', '172.20.0.1'), /--ipv6-pool must be/, text);
});
