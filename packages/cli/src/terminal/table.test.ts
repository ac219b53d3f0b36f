import assert from 'node:assert/strict';
import { test } from 'node:test';
import { styleText } from 'node:util';
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
  const red = styleText('red', 'x', { validateStream: false });
  assert.equal(formatTable(['A', 'B'], [[red, 'y']]), `A  B\n${red}  y\n`);
});
