import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkRestInput } from './check-rest-input.ts';

test('a text that breaks the rule of its field is refused in the words of the field, not by a pattern', () => {
  const body = { name: 'ä', image: { type: 'oci', reference: 'x' } };
  assert.throws(() => checkRestInput('sandboxes.create', 'body', body), {
    message: /^name is not valid: 1–128 letters, digits/,
  });
  const renamed = { slug: 'Not A Slug' };
  assert.throws(() => checkRestInput('sandboxes.update', 'body', renamed), {
    message: /^slug is not valid: 3–63 lowercase letters/,
  });
});
