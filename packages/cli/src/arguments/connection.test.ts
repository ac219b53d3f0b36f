import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InvalidArgumentError } from 'commander';
import { parseConnection } from './connection.ts';

test('a connection is a host, a port and a protocol; ICMP has no port', () => {
  const tcp = { host: 'example.com', port: 443, protocol: 'tcp' };
  assert.deepEqual(parseConnection('example.com:443'), tcp);
  assert.deepEqual(parseConnection('10.0.0.7:53/UDP'), { host: '10.0.0.7', port: 53, protocol: 'udp' });
  assert.deepEqual(parseConnection('[2001:db8::1]:80'), { host: '2001:db8::1', port: 80, protocol: 'tcp' });
  assert.deepEqual(parseConnection('10.0.0.7/icmpv4'), { host: '10.0.0.7', port: 0, protocol: 'icmpv4' });
});

test('malformed and unknown connections are refused', () => {
  for (const text of [
    '',
    'example.com',
    'a:0',
    'a:65536',
    'a:1/sctp',
    'a:1/icmpv4',
    '2001:db8::1:80',
    'a b:1',
  ])
    assert.throws(() => parseConnection(text), InvalidArgumentError, text);
});
