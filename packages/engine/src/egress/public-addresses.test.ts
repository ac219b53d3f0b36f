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
    '192.168.1.1',
    '198.19.0.1',
    '224.0.0.1',
    '255.255.255.255',
  ];
  for (const address of refused) assert.equal(ipv4(address), false, address);
});

test('neighbours of the refused ranges are public', () => {
  const allowed = ['1.1.1.1', '168.63.129.15', '168.63.129.17', '192.0.1.1', '198.20.0.1', '172.32.0.1'];
  for (const address of allowed) assert.equal(ipv4(address), true, address);
});
