import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { renderCpuinfo, renderCpuOnline, renderMeminfo } from './proc-files.ts';

const MIB = 1024 * 1024;

test('meminfo shows the limit as the memory of the machine, in the format of the kernel', () => {
  const lines = renderMeminfo(256 * MIB, 56 * MIB).split('\n');
  assert.equal(lines[0], 'MemTotal:         262144 kB');
  assert.equal(lines[1], 'MemFree:          204800 kB');
  assert.equal(lines[2], 'MemAvailable:     204800 kB');
  const kernelLine = /^[A-Za-z]+: +\d+ kB$/;
  for (const line of lines.slice(0, -1)) assert.match(line, kernelLine);
  assert.equal(lines.at(-1), '');
});

test('free memory is never negative and never beyond the total', () => {
  fc.assert(
    fc.property(fc.integer({ min: 16, max: 4_194_304 }), fc.nat(), (limitMib, usedBytes) => {
      const [total, free] =
        renderMeminfo(limitMib * MIB, usedBytes)
          .match(/\d+/g)
          ?.map(Number) ?? [];
      assert.equal(total, limitMib * 1024);
      assert.ok(free !== undefined && free >= 0 && free <= limitMib * 1024);
    }),
  );
});

const BLOCK = (index: number) =>
  `processor\t: ${index}\nmodel name\t: Some CPU\nphysical id\t: ${index}\nsiblings\t: 8\ncore id\t\t: ${index}\ncpu cores\t: 8\napicid\t\t: ${index * 2}\nflags\t\t: fpu vme: de`;
const HOST = [4, 5, 6, 7].map((index) => `${BLOCK(index)}\n\n`).join('');

test('cpuinfo shows as many processors as were granted, numbered from 0', () => {
  const shown = renderCpuinfo(HOST, 2);
  assert.deepEqual(shown.match(/^processor\t: \d+$/gm), ['processor\t: 0', 'processor\t: 1']);
  assert.deepEqual(shown.match(/^cpu cores\t: \d+$/gm), ['cpu cores\t: 2', 'cpu cores\t: 2']);
  assert.deepEqual(shown.match(/^core id\t\t: \d+$/gm), ['core id\t\t: 0', 'core id\t\t: 1']);
  assert.equal(shown.match(/^flags\t\t: fpu vme: de$/gm)?.length, 2);
});

test('no more processors are shown than the host has', () => {
  assert.equal(renderCpuinfo(HOST, 16).match(/^processor/gm)?.length, 4);
  assert.match(renderCpuinfo(readFileSync('/proc/cpuinfo', 'latin1'), 1), /^processor\s*: 0\n/);
  assert.equal(renderCpuOnline(4, 16), '0-3\n');
});

test('the list of online processors has the form of the kernel', () => {
  assert.equal(renderCpuOnline(4, 1), '0\n');
  assert.equal(renderCpuOnline(4, 3), '0-2\n');
});
