import assert from 'node:assert/strict';
import { test } from 'node:test';
import { painter } from './colours.ts';
import { formatTable } from './table.ts';

test('columns are as wide as their widest cell, and lines have no trailing spaces', () => {
  const table = formatTable(
    ['NAME', 'STATE'],
    [
      ['a-long-name', 'running'],
      ['b', ''],
    ],
  );
  assert.equal(table, 'NAME         STATE\na-long-name  running\nb\n');
});

test('colours do not shift columns', () => {
  const red = painter(true)('red', 'x');
  assert.ok(red.drawn.startsWith('\u001B[31mx'));
  assert.equal(formatTable(['A', 'B'], [[red, 'y']]), `A  B\n${red.drawn}  y\n`);
});

test('a cell makes no row, no column and no sequence for a terminal', () => {
  const cell = 'a\nforged  row\u001B[2J\u202E';
  const shown = 'a<U+000A>forged  row<U+001B>[2J<U+202E>';
  assert.equal(formatTable(['A', 'B'], [[cell, 'y']]), `A${' '.repeat(shown.length - 1)}  B\n${shown}  y\n`);
  assert.equal(painter(false)('red', cell).drawn, shown);
});
