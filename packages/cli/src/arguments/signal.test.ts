import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseSignal } from './signal.ts';

test('a signal is a name, with or without SIG, or a number', () => {
  for (const text of ['HUP', 'SIGHUP', 'hup', '1']) assert.equal(parseSignal(text), 'HUP', text);
  for (const text of ['', 'NONE', '0', '999', '-9', 'SIG'])
    assert.throws(() => parseSignal(text), /SIGHUP/, text);
});
