import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sumByDay, sumByThing, toCsv } from './sum-usage.ts';

const SANDBOXES = {
  rows: [
    {
      sandbox_id: 'a',
      day: '2026-02-02T00:00:00.000Z',
      vcpu_seconds: 3600,
      mem_mib_seconds: 1024 * 3600,
      disk_mib_seconds: 0,
    },
    {
      sandbox_id: 'a',
      day: '2026-02-04T00:00:00.000Z',
      vcpu_seconds: 7200,
      mem_mib_seconds: 0,
      disk_mib_seconds: 512 * 3600,
    },
  ],
  sandboxes: [{ id: 'a', name: '=1+1', slug: 'a' }],
};
const STORAGE = {
  rows: [{ volume_id: 'v', day: '2026-02-02T00:00:00.000Z', mib_seconds: 2048 * 3600 }],
  volumes: [{ id: 'v', name: null }],
};

test('usage is summed by day, gaps included, and by what used it', () => {
  const days = sumByDay(SANDBOXES, new Date('2026-02-02T10:00:00Z'), new Date('2026-02-04T12:00:00Z'));
  assert.deepEqual(days, [
    { day: '2026-02-02', vcpuHours: 1 },
    { day: '2026-02-03', vcpuHours: 0 },
    { day: '2026-02-04', vcpuHours: 2 },
  ]);
  const things = sumByThing(SANDBOXES, STORAGE);
  assert.deepEqual(
    things.map(({ kind, vcpuHours, memoryGibHours, diskGibHours }) => [
      kind,
      vcpuHours,
      memoryGibHours,
      diskGibHours,
    ]),
    [
      ['sandbox', 3, 1, 0.5],
      ['volume', 0, 0, 2],
    ],
  );
});

test('a formula in a name is exported as text', () => {
  const [, first, second] = toCsv(sumByThing(SANDBOXES, STORAGE)).split('\r\n');
  assert.equal(first, `"sandbox","a","'=1+1",3,1,0.5`);
  assert.equal(second, '"volume","v","host volume",0,0,2');
});
