import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Network } from '@svc/contract';
import { interceptionOf } from './interception.ts';

type Secrets = NonNullable<Network['secrets']>;
type Entry = Secrets['entries'][number];

const HOSTS = [{ type: 'exact' as const, value: 'other.example' }];
const ENTRY = {
  env_var: 'KEY',
  placeholder: '$SVC_KEY',
  allowed_hosts: [{ type: 'exact' as const, value: 'api.example' }],
};

function secretsOf(entry: Partial<Entry>, whole: Omit<Secrets, 'entries'> = {}) {
  const secrets = { entries: [{ ...ENTRY, ...entry }], ...whole };
  return interceptionOf({ secrets }, { KEY: 'value' })?.secrets;
}

test('both forms of a secret mean the same', () => {
  const pairs: readonly (readonly [NonNullable<Entry['injection']>, NonNullable<Entry['substitution']>])[] = [
    [{}, {}],
    [
      { headers: false, basic_auth: false, body: true },
      { headers: false, body: true },
    ],
    [{ query_params: true }, { headers: true, query: true, header_fields: [] }],
  ];
  for (const [injection, substitution] of pairs)
    assert.deepEqual(secretsOf({ substitution }), secretsOf({ injection }));
  const named = secretsOf({ substitution: { header_fields: ['Authorization', 'X-Api-Key'] } });
  assert.deepEqual(named?.entries[0]?.injection, {
    headers: true,
    headerFields: ['authorization', 'x-api-key'],
    basicAuth: true,
    queryParams: false,
    body: false,
  });
  const other = secretsOf({ substitution: { header_fields: ['X-Api-Key'] } });
  assert.equal(other?.entries[0]?.injection.basicAuth, false, 'Basic is in Authorization');
});

test('both forms of what happens on a violation mean the same', () => {
  const block = { type: 'block' } as const;
  const older = { type: 'passthrough', hosts: HOSTS } as const;
  assert.deepEqual(secretsOf({ violation_action: block }), secretsOf({ on_violation: block }));
  assert.deepEqual(
    secretsOf({}, { violation_action: block, passthrough_hosts: [] }),
    secretsOf({}, { on_violation: block }),
  );
  assert.deepEqual(
    secretsOf({ passthrough_hosts: HOSTS }, { passthrough_hosts: HOSTS }),
    secretsOf({ on_violation: { ...older } }, { on_violation: { ...older } }),
  );
  const both = secretsOf({ passthrough_hosts: HOSTS, violation_action: block });
  assert.deepEqual(both?.entries[0]?.onViolation, { ...older, otherwise: 'block' });
  assert.deepEqual(secretsOf({})?.onViolation, { type: 'block_and_log' });
});
