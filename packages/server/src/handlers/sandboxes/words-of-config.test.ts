import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PlatformError } from '@svc/contract';
import { inWordsOfConfig } from './words-of-config.ts';

const invalid = (field: string, reason: string, more: object = {}) =>
  new PlatformError('invalid_sandbox_config', `${field}: ${reason}`, { details: { field, ...more } });

test('an error of a spec names the field of the config', () => {
  for (const [field, name] of [
    ['image.reference', 'config.image'],
    ['mounts', 'config.volumes'],
    ['mounts[2].guest', 'config.volumes[2]'],
    ['env[1].key', 'config.envs[1]'],
    ['runtime.scripts.go', 'config.scripts.go'],
  ] as const) {
    const error = inWordsOfConfig(invalid(field, 'is not right', { host: '/etc' }));
    assert.ok(PlatformError.is(error, 'invalid_sandbox_config'));
    assert.equal(error.message, `Invalid params: ${name} is not right`);
    assert.deepEqual(error.details, { field: name, reason: 'is not right', host: '/etc' });
  }
});

test('other errors stay unchanged', () => {
  for (const error of [
    invalid('config.ports[0]', 'must be a port'),
    invalid('network', 'is not there yet'),
    new PlatformError('image_not_found', 'image: it is not there', { details: { field: 'image.reference' } }),
    new Error('a bug'),
  ]) {
    assert.equal(inWordsOfConfig(error), error);
  }
});
