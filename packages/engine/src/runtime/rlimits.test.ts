import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { RLIMIT_RESOURCES } from '@svc/contract/spec';
import { grantableRlimits, rlimitCeilings } from './rlimits.ts';

const LIMITS = `Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max stack size            8388608              unlimited            bytes
Max processes             96360                96360                processes
Max open files            1024                 20000                files
Max locked memory         8388608              8388608              bytes
`;
const UNPRIVILEGED = 'Name:\tnode\nCapEff:\t000001fffeffffff\n';
const PRIVILEGED = 'Name:\tnode\nCapEff:\t000001ffffffffff\n';

test('without the privilege to raise limits, ours are the most that can be granted', () => {
  const ceilings = rlimitCeilings(LIMITS, UNPRIVILEGED, 1_048_576);
  assert.deepEqual(Object.fromEntries(ceilings), { memlock: 8_388_608, nofile: 20_000, nproc: 96_360 });
});

test('with it, the kernel limits open files, and all other limits are at most those of the engine', () => {
  const ceilings = rlimitCeilings(LIMITS, PRIVILEGED, 1_048_576);
  assert.deepEqual(Object.fromEntries(ceilings), { memlock: 8_388_608, nofile: 1_048_576, nproc: 96_360 });
});

test('limits beyond the ceiling are lowered, others stay', () => {
  const ceilings = rlimitCeilings(LIMITS, UNPRIVILEGED, 1_048_576);
  const asked = [
    { resource: 'nofile', soft: 65_536, hard: 65_536 },
    { resource: 'nproc', soft: 10, hard: 100_000 },
    { resource: 'stack', soft: 2 ** 40, hard: 2 ** 50 },
  ] as const;
  assert.deepEqual(grantableRlimits(asked, ceilings), [
    { resource: 'nofile', soft: 20_000, hard: 20_000 },
    { resource: 'nproc', soft: 10, hard: 96_360 },
    { resource: 'stack', soft: 2 ** 40, hard: 2 ** 50 },
  ]);
});

test('a soft limit never exceeds its hard limit', () => {
  assert.deepEqual(grantableRlimits([{ resource: 'core', soft: 5, hard: 1 }], new Map()), [
    { resource: 'core', soft: 1, hard: 1 },
  ]);
});

test('this kernel names every resource that a caller can limit', () => {
  const own = readFileSync('/proc/self/limits', 'latin1').replaceAll('unlimited', '1');
  assert.deepEqual([...rlimitCeilings(own, UNPRIVILEGED, 0).keys()].sort(), [...RLIMIT_RESOURCES].sort());
});
