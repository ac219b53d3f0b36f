import assert from 'node:assert/strict';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { hostResolvers, parseResolvConf } from './resolvers.ts';

const at = (...addresses: readonly string[]) => addresses.map((address) => ({ address, port: 53 }));

test('resolvers are read from resolv.conf as by the C library', () => {
  const text = '# x\nsearch lan\nnameserver 192.0.2.1\n nameserver 2001:db8::1\n';
  assert.deepEqual(parseResolvConf(text), at('192.0.2.1', '2001:db8::1'));
  assert.deepEqual(parseResolvConf('nameserver nonsense\n'), at('127.0.0.1'));
  assert.equal(parseResolvConf('nameserver 192.0.2.1\n'.repeat(5)).length, 3);
});

test('resolvers are read again when their file is replaced', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-resolvers-'));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, 'resolv.conf');
  await writeFile(file, 'nameserver 192.0.2.1\n');
  const resolvers = hostResolvers(file);
  t.after(() => resolvers.close());
  assert.deepEqual(resolvers.current(), at('192.0.2.1'));
  await writeFile(`${file}.new`, 'nameserver 192.0.2.2\n');
  await rename(`${file}.new`, file);
  await waitUntil(() => resolvers.current()[0]?.address === '192.0.2.2');
  await rm(file);
  await waitUntil(() => resolvers.current()[0]?.address === '127.0.0.1');
});
