import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { Sealer } from './sealer.ts';

const sealer = new Sealer([randomBytes(32)]);

test('every text opens as it was sealed, and the same text never looks the same twice', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string(), (text, context) => {
      const sealed = sealer.seal(text, context);
      assert.equal(sealer.open(sealed, context), text);
      assert.notEqual(sealer.seal(text, context), sealed);
    }),
  );
});

test('a value opens nowhere but at its own place', () => {
  const sealed = sealer.seal('hunter2', 'registry:1');
  assert.throws(() => sealer.open(sealed, 'registry:2'));
});

test('a value of which any part was changed or cut does not open', () => {
  const sealed = sealer.seal('hunter2', 'registry:1');
  const [keyId, body = ''] = sealed.split('.');
  const bytes = Buffer.from(body, 'base64url');
  for (let at = 0; at < bytes.length; at += 1) {
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ 1;
    assert.throws(() => sealer.open(`${keyId}.${changed.toString('base64url')}`, 'registry:1'), `byte ${at}`);
    const cut = bytes.subarray(0, at).toString('base64url');
    assert.throws(() => sealer.open(`${keyId}.${cut}`, 'registry:1'), `cut at ${at}`);
  }
});

test('a value of a key that is not at hand does not open, and says which key that is', () => {
  const other = new Sealer([randomBytes(32)]);
  const sealed = other.seal('hunter2', 'registry:1');
  assert.throws(() => sealer.open(sealed, 'registry:1'), new RegExp(sealed.slice(0, 8)));
  assert.equal(sealer.canOpen(sealed), false);
});

test('a mark is recognized with the text and place that it was made of, also after the keys were rotated', () => {
  const [old, fresh] = [randomBytes(32), randomBytes(32)];
  const mark = new Sealer([old]).mark('hunter2', 'request');
  const rotated = new Sealer([fresh, old]);
  assert.equal(rotated.isMarkOf(mark, 'hunter2', 'request'), true);
  assert.equal(rotated.isMarkOf(mark, 'hunter3', 'request'), false);
  assert.equal(rotated.isMarkOf(mark, 'hunter2', 'body'), false);
  assert.equal(rotated.isMarkOf(`${mark}0`, 'hunter2', 'request'), false);
  assert.equal(new Sealer([fresh]).isMarkOf(mark, 'hunter2', 'request'), false);
  assert.notEqual(rotated.mark('hunter2', 'request'), mark);
});
