import assert from 'node:assert/strict';
import { test } from 'node:test';
import { showJson, showLine, showLines } from './visible.ts';

const HOSTILE = 'a\u202Egpj.exe\u2069\u001B[2J\u009B8m\u0007\u200Bb\u2028c\u007F';
const SHOWN = 'a<U+202E>gpj.exe<U+2069><U+001B>[2J<U+009B>8m<U+0007><U+200B>b<U+2028>c<U+007F>';

test('invisible characters of a name are made visible, and other scripts stay as they are', () => {
  assert.equal(showLine(HOSTILE), SHOWN);
  assert.equal(showLine('one\r\n\ttwo'), 'one<U+000D><U+000A><U+0009>two');
  const others = 'שלום-عالم-می‌خواهم-👩‍💻-👁️‍🗨️-☎️-葛󠄀-Grüße.txt';
  assert.equal(showLine(others), others);
});

test('no text hides in another', () => {
  const tags = Array.from('run', (letter) => String.fromCodePoint(0xe0000 + (letter.codePointAt(0) ?? 0)));
  assert.equal(showLine(`a${tags.join('')}`), 'a<U+E0072><U+E0075><U+E006E>');
  assert.equal(showLine('a\uFE0F\uFE01\u{E0101}b'), 'a\uFE0F<U+FE01><U+E0101>b');
  assert.equal(showLine('a\u200D\u200C\u200Db'), 'a\u200D<U+200C><U+200D>b');
  assert.equal(showLine('a\u3164b\u034Fc\u115F'), 'a<U+3164>b<U+034F>c<U+115F>');
  assert.deepEqual(JSON.parse(showJson(JSON.stringify(tags))), tags);
  assert.match(showJson(JSON.stringify(tags)), /^[ -~]*$/);
});

test('lines and columns of text stay', () => {
  const text = 'one\r\n\ttwo\n';
  assert.equal(showLines(`${text}${HOSTILE}\rover`), `${text}${SHOWN}<U+000D>over`);
});

test('JSON means the same afterwards', () => {
  const value = { [HOSTILE]: [HOSTILE, 1, 'two\nlines\r'] };
  for (const indent of [0, 2]) {
    const json = showJson(JSON.stringify(value, null, indent));
    assert.deepEqual(JSON.parse(json), value);
    assert.match(json, /^[ -~\n]*$/);
  }
});
