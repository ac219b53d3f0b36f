import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAddressPool } from './address-pool.ts';

test('a range of the pool is known by the sandboxes that have its addresses', () => {
  const pool = parseAddressPool('10.1.4.0/24');
  assert.deepEqual(pool.indexesOf('10.1.4.2', 32), { first: 0, last: 0 });
  assert.deepEqual(pool.indexesOf('10.1.4.128', 25), { first: 126, last: 252 });
  assert.equal(pool.addressOf(252), '10.1.4.254');
  assert.deepEqual(pool.indexesOf('10.1.4.0', 24), { first: 0, last: pool.size - 1 });
  for (const [base, length] of [
    ['10.1.5.0', 32],
    ['10.1.3.255', 32],
    ['10.1.4.0', 23],
    ['0.0.0.0', 0],
  ] as const)
    assert.equal(pool.indexesOf(base, length), null);
  for (const nobodys of ['10.1.4.0', '10.1.4.1', '10.1.4.255']) {
    const { first = 0, last = 0 } = pool.indexesOf(nobodys, 32) ?? {};
    assert.ok(first > last, nobodys);
  }
});

test('the first address is the gateway, the last one is not used, and those between are for sandboxes', () => {
  const pool = parseAddressPool('172.30.0.0/29');
  assert.equal(pool.gateway, '172.30.0.1');
  assert.equal(pool.size, 5);
  assert.deepEqual([pool.addressOf(0), pool.addressOf(4)], ['172.30.0.2', '172.30.0.6']);
});

test('addresses carry over into the next octet and above 127.255.255.255', () => {
  assert.equal(parseAddressPool('172.30.0.0/16').addressOf(254), '172.30.1.0');
  assert.equal(parseAddressPool('240.0.0.0/8').addressOf(65_534), '240.1.0.0');
});

test('a pool that is malformed, not aligned or too small is refused', () => {
  for (const text of [
    '',
    '172.30.0.0',
    '172.30.0.0/30',
    '172.30.0.4/16',
    '172.30.0/16',
    '172.30.0.256/24',
    'a/16',
  ]) {
    assert.throws(() => parseAddressPool(text), Error, text);
  }
});

test('pools know which other networks they overlap with', () => {
  const pool = parseAddressPool('172.30.0.0/16');
  assert.ok(pool.overlaps('172.30.4.0', 24));
  assert.ok(pool.overlaps('172.16.0.0', 12));
  assert.ok(pool.overlaps('172.30.255.255', 32));
  assert.ok(!pool.overlaps('172.31.0.0', 16));
  assert.ok(!pool.overlaps('172.29.255.255', 32));
});
