import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collectSecret, collectSecretHost } from './secret.ts';

test('a secret is named by its variable, with the hosts that may have it', () => {
  const [entry, ...more] = collectSecret('API_KEY@api.example.com,*.example.org,*');
  assert.deepEqual(more, []);
  assert.deepEqual(entry, {
    env_var: 'API_KEY',
    value: '',
    source: { type: 'env', var: 'API_KEY' },
    allowed_hosts: [
      { type: 'exact', value: 'api.example.com' },
      { type: 'wildcard', value: '*.example.org' },
      { type: 'any' },
    ],
  });
  assert.equal(collectSecret('B@b.example', [entry]).length, 2);
});

test('a secret without a variable or a host is refused', () => {
  for (const text of [
    '',
    'API_KEY',
    'API_KEY@',
    '@a.example',
    'A=b@a.example',
    'A@a.example,',
    'A@a b',
    'A@*a.example',
  ])
    assert.throws(() => collectSecret(text), /ENV@HOST/, text);
});

test('a host that may have a secret of the organization is named; all of them are refused', () => {
  assert.deepEqual(collectSecretHost('*.b.example', collectSecretHost('a.example')), [
    'a.example',
    '*.b.example',
  ]);
  for (const text of ['*', '', 'a b', 'https://a.example', '*a.example'])
    assert.throws(() => collectSecretHost(text), /\*\.example\.com/, text);
});
