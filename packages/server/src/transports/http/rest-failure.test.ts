import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeRestFailure } from './rest-failure.ts';

test('a bug is 500 internal, with the id of the request and nothing of the bug', () => {
  const { status, body } = describeRestFailure(new TypeError('secret is undefined'), 'request-7');
  assert.deepEqual(
    [status, body.error.code, body.error.details],
    [500, 'internal', { request_id: 'request-7' }],
  );
  assert.ok(body.error.message.includes('request-7'));
  assert.ok(!JSON.stringify(body).includes('secret'));
});
