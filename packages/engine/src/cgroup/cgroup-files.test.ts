import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { limitBytes, processIds, singleNumber, valueOf } from './cgroup-files.ts';

const CPU_STAT_V2 = `usage_usec 24512043
user_usec 18200120
system_usec 6311923
nice_usec 0
nr_periods 410
nr_throttled 12
throttled_usec 90210
`;

const MEMORY_EVENTS_V2 = `low 0
high 0
max 4032
oom 3
oom_kill 2
oom_group_kill 0
`;

const OOM_CONTROL_V1 = `oom_kill_disable 0
under_oom 0
oom_kill 7
`;

test('a value is found by its whole key, on the first, a middle and the last line', () => {
  assert.equal(valueOf(CPU_STAT_V2, 'usage_usec'), 24_512_043);
  assert.equal(valueOf(MEMORY_EVENTS_V2, 'oom'), 3);
  assert.equal(valueOf(MEMORY_EVENTS_V2, 'oom_kill'), 2);
  assert.equal(valueOf(OOM_CONTROL_V1, 'oom_kill'), 7);
  assert.equal(valueOf('a 1\nlast 2', 'last'), 2);
});

test('a key that is absent has no value', () => {
  assert.equal(valueOf(MEMORY_EVENTS_V2, 'kill'), undefined);
  assert.equal(valueOf('', 'oom_kill'), undefined);
  assert.equal(valueOf('oom_kill x\n', 'oom_kill'), undefined);
});

test('both ways of writing "no limit" are understood', () => {
  assert.equal(limitBytes('max\n'), null);
  assert.equal(limitBytes('9223372036854771712\n'), null);
  assert.equal(limitBytes('268435456\n'), 268_435_456);
});

test('processes outside our pid namespace are left out', () => {
  assert.deepEqual(processIds('12\n0\n4194303\n'), [12, 4_194_303]);
  assert.deepEqual(processIds(''), []);
});

test('every file of numbers that the kernel can write is read back', () => {
  const key = fc.stringMatching(/^[a-z_]{1,12}$/);
  const lines = fc.uniqueArray(fc.tuple(key, fc.nat()), { selector: ([name]) => name, minLength: 1 });
  fc.assert(
    fc.property(lines, (entries) => {
      const text = entries.map(([name, value]) => `${name} ${value}\n`).join('');
      for (const [name, value] of entries) assert.equal(valueOf(text, name), value);
    }),
  );
  fc.assert(fc.property(fc.nat(), (value) => singleNumber(`${value}\n`) === value));
});
