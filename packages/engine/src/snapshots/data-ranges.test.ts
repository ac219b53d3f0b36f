import assert from 'node:assert/strict';
import { open, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { dataRanges, parseExtents } from './data-ranges.ts';

const MIB = 2 ** 20;

test('ranges contain written data and no holes', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-ranges-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, 'file');
  const file = await open(path, 'w');
  await file.truncate(64 * MIB + 10);
  for (const at of [5 * MIB, 40 * MIB + 17, 64 * MIB + 9]) await file.write('x', at);
  await file.close();
  const ranges = await dataRanges(path, 64 * MIB + 10, AbortSignal.timeout(100_000));
  for (const at of [5 * MIB, 40 * MIB + 17, 64 * MIB + 9])
    assert.ok(
      ranges.some(({ start, end }) => start <= at && at < end),
      `${at} is left out of ${JSON.stringify(ranges)}`,
    );
  const dataBytes = ranges.reduce((sum, { start, end }) => sum + end - start, 0);
  assert.ok(dataBytes < MIB, `${dataBytes} bytes are said to be data`);
  const unknown = await dataRanges(join(folder, 'missing'), 100, AbortSignal.timeout(100_000));
  assert.deepEqual(unknown, [{ start: 0, end: 100 }]);
});

test('extents are read as they are printed; where they make no sense nothing is left out', () => {
  const lines = (...extents: string[]) =>
    [
      'Filesystem type is: ef53',
      'File size of disk is 20480 (5 blocks of 4096 bytes)',
      ' ext:     logical_offset:        physical_offset: length:   expected: flags:',
      ...extents,
      'disk: 2 extents found',
    ].join('\n');
  const first = '   0:        0..       0:   17154048..  17154048:      1:';
  const last = '   1:        3..       4:   17154051..  17154052:      2:   17154049: last,unwritten,eof';
  assert.deepEqual(parseExtents(lines(first, last), 18_000), [
    { start: 0, end: 4096 },
    { start: 12_288, end: 18_000 },
  ]);
  assert.deepEqual(parseExtents(lines(), 20_480), []);
  assert.deepEqual(parseExtents(lines(last, first), 20_480), [{ start: 0, end: 20_480 }]);
});
