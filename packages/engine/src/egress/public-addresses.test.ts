import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isPublicAddress } from './public-addresses.ts';

const ipv4 = (text: string) => isPublicAddress(Uint8Array.from(text.split('.').map(Number)));

test('addresses of this host, its networks and any cloud’s metadata service are not public', () => {
  const refused = [
    '0.0.0.0',
    '10.1.2.3',
    '100.100.100.200',
    '127.0.0.53',
    '168.63.129.16',
    '169.254.169.254',
    '172.31.255.255',
    '192.0.0.192',
    '192.0.2.1',
    '192.31.196.1',
    '192.52.193.1',
    '192.88.99.1',
    '192.168.1.1',
    '192.175.48.1',
    '198.19.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '255.255.255.255',
  ];
  for (const address of refused) assert.equal(ipv4(address), false, address);
});

test('neighbours of the refused ranges are public', () => {
  const allowed = ['1.1.1.1', '168.63.129.15', '168.63.129.17', '192.0.1.1', '198.20.0.1', '172.32.0.1'];
  for (const address of allowed) assert.equal(ipv4(address), true, address);
});

test('special ranges inside global IPv6 are not public, and their neighbours are', () => {
  const ipv6 = (head: string) => isPublicAddress(Buffer.from(head.padEnd(32, '0'), 'hex'));
  for (const head of [
    '20010000',
    '200101ff',
    '20010db8',
    '2620004f8000',
    '3fff0',
    '00',
    'fc',
    'fe80',
    'ff02',
  ])
    assert.equal(ipv6(head), false, head);
  for (const head of ['20010200', '20010db9', '2620004f8001', '3fff1', '2a00'])
    assert.equal(ipv6(head), true, head);
});
