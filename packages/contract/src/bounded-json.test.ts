import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseBoundedJson, parseRequestJson } from './bounded-json.ts';

const parse = (text: string) => parseBoundedJson(Buffer.from(text));
const refusal = (reason: RegExp) => ({ code: 'invalid_request', message: reason });

test('texts within the limits are parsed as JSON.parse does, brackets and quotes in strings included', () => {
  const value = { a: [1, '[[[{{{', 'quoted \\" and \\\\', { 'key: "x"': null }], Größe: 1.5 };
  assert.deepEqual(parse(JSON.stringify(value)), value);
  assert.deepEqual(parse(JSON.stringify(`${'['.repeat(100)}\\`)), `${'['.repeat(100)}\\`);
  for (const text of ['', '{', '{"a":1', '"open', '"\\', 'nothing'])
    assert.throws(() => parse(text), SyntaxError);
  assert.throws(() => parseBoundedJson(Buffer.of(0x22, 0xff, 0x22)), TypeError);
});

test('deeply nested texts and texts with very many parts are refused before they are parsed', () => {
  assert.doesNotThrow(() => parse('['.repeat(64) + ']'.repeat(64)));
  assert.throws(() => parse('['.repeat(65) + ']'.repeat(65)), refusal(/deeper than 64 levels/));
  assert.throws(() => parse('{"a":'.repeat(1_000_000)), refusal(/deeper than 64 levels/));
  const keys = Array.from({ length: 50_001 }, (_, index) => `"k${index}":0`).join(',');
  assert.throws(() => parse(`{${keys}}`), refusal(/more than 50000 objects, arrays and keys/));
  assert.throws(() => parse(`[${'{},'.repeat(50_001)}0]`), refusal(/more than 50000 objects/));
  assert.throws(() => parse(`[${'[],'.repeat(50_001)}0]`), refusal(/more than 50000 objects/));
  assert.throws(() => parse(`[${'0,'.repeat(5_000_000)}0]`), refusal(/elements/));
  const bytes = parse(`[${'255,'.repeat(4 * 1024 * 1024)}0]`);
  assert.ok(Array.isArray(bytes) && bytes.length === 4 * 1024 * 1024 + 1, 'the bytes of a file');
});

test('a request with a key twice in one object is refused by the name of the key', () => {
  const read = (text: string) => parseRequestJson(Buffer.from(text));
  for (const text of [
    '{"a":1,"a":1}',
    '{"a":1 , "b":[{}], "\\u0061"\n:2}',
    '[{"b":{"x":{"a":[],"c":{"a":1},"a":{}}}}]',
  ])
    assert.throws(() => read(text), refusal(/the key "a" twice/), text);
  for (const text of ['{"a":{"a":"a"},"b":["a","a"],"c":[{"a":1},{"a":1}]}', '["a:\\"", "a:\\""]', '"a"'])
    assert.deepEqual(read(text), JSON.parse(text));
  fc.assert(fc.property(fc.json(), (text) => assert.deepEqual(read(text), JSON.parse(text))));
});
