import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseMount } from './mount.ts';

test('a volume is mounted where its path says, writable unless it ends with ro', () => {
  assert.deepEqual(parseMount('cache:/c:ro', parseMount('data:/data')), [
    { type: 'named', name: 'data', guest: '/data', options: { readonly: false } },
    { type: 'named', name: 'cache', guest: '/c', options: { readonly: true } },
  ]);
});

test('a path is a folder of the host, and one of here is made absolute', () => {
  const folder = (host: string) => [{ type: 'bind', host, guest: '/d', options: { readonly: false } }];
  assert.deepEqual(parseMount('/srv/data:/d'), folder('/srv/data'));
  assert.deepEqual(parseMount('.:/d'), folder(process.cwd()));
  assert.deepEqual(parseMount('./sub/..:/d'), folder(process.cwd()));
});

test('a mount without a volume or an absolute path is refused', () => {
  for (const text of ['data', ':/x', 'data:x', 'data:/x:rx', 'a:/b:ro:c'])
    assert.throws(() => parseMount(text), /VOLUME/, text);
});
