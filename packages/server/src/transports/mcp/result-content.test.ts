import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contentOfResults } from './result-content.ts';

test('a model gets each chart once as an image, and a note of what is missing', () => {
  const result = { metadata: {}, is_main_result: false, truncated: false, left_out: [] };
  const tooLarge = { type: 'image/png', bytes: 5, reason: 'too_large', message: 'use a file' } as const;
  assert.deepEqual(
    contentOfResults([
      { ...result, data: { 'text/plain': '<Figure>', 'image/png': 'aWE=', 'image/jpeg': 'anA=' } },
      { ...result, data: { 'text/plain': '42', 'text/html': '<b>42</b>' } },
      { ...result, data: { 'text/plain': 'x' }, truncated: true, left_out: [tooLarge] },
    ]),
    [
      { type: 'image', mimeType: 'image/png', data: 'aWE=' },
      { type: 'text', text: '[image/png was left out: use a file]' },
    ],
  );
});
