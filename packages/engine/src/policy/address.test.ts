import assert from 'node:assert/strict';
import { BlockList, isIP } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { addressFromBytes, contains, formatAddress, parseAddress, parseCidr } from './address.ts';

test('an address is what Node takes for one, in standard notation (5,000 texts)', () => {
  const texts = fc.oneof(
    fc.ipV4(),
    fc.ipV6(),
    fc.stringMatching(/^[0-9a-f:.]{1,20}$/),
    fc.ipV4().map((text) => `::ffff:${text}`),
  );
  fc.assert(
    fc.property(texts, (text) => {
      assert.equal(parseAddress(text) !== null, isIP(text) !== 0, text);
    }),
    { numRuns: 5000 },
  );
});

test('an address survives being written and read', () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (text) => {
      const address = parseAddress(text);
      assert.ok(address);
      assert.deepEqual(parseAddress(formatAddress(address)), address);
    }),
  );
});

test('IPv4 written as IPv6 is IPv4, also as bytes and as a range', () => {
  const plain = parseAddress('10.1.2.3');
  assert.deepEqual(parseAddress('::ffff:10.1.2.3'), plain);
  assert.deepEqual(parseAddress('0:0:0:0:0:FFFF:0a01:0203'), plain);
  assert.deepEqual(addressFromBytes(Buffer.from('00000000000000000000ffff0a010203', 'hex')), plain);
  assert.deepEqual(parseCidr('::ffff:10.0.0.0/104'), parseCidr('10.0.0.0/8'));
});

test('non-standard notations are not addresses', () => {
  for (const text of [
    '010.1.2.3',
    '0x7f.1',
    '2130706433',
    '127.1',
    '1.2.3.4.5',
    '',
    '::1::',
    'fe80::1%eth0',
    '1.2.3.256',
  ])
    assert.equal(parseAddress(text), null, text);
  for (const text of ['10.0.0.1/8', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0.0/-1', '::1/64'])
    assert.equal(parseCidr(text), null, text);
});

test('a range contains what Node says it contains (5,000 pairs)', () => {
  const near = fc.tuple(fc.nat(0xffffffff), fc.nat(32), fc.nat(0xffffffff), fc.nat(32));
  const text = (value: number) => formatAddress({ family: 4, value: BigInt(value >>> 0) });
  fc.assert(
    fc.property(near, ([base, prefix, noise, keep]) => {
      const mask = prefix === 0 ? 0 : (0xffffffff << (32 - prefix)) >>> 0;
      const range = `${text((base & mask) >>> 0)}/${prefix}`;
      // Half of the bits from the range's own, so that both outcomes happen.
      const kept = keep === 0 ? 0 : (0xffffffff << (32 - keep)) >>> 0;
      const address = text(((base & kept) | (noise & ~kept)) >>> 0);
      const list = new BlockList();
      list.addSubnet(range.split('/')[0] ?? '', prefix);
      const [parsedRange, parsed] = [parseCidr(range), parseAddress(address)];
      assert.ok(parsedRange && parsed);
      assert.equal(contains(parsedRange, parsed), list.check(address), `${address} in ${range}`);
    }),
    { numRuns: 5000 },
  );
});
