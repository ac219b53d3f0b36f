import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { RuntimeProbe } from '../runtime/runtime.ts';
import { ProbeMemory } from './probe-memory.ts';

const WORKS: RuntimeProbe = { usable: true, reason: 'runs', version: '1', released: new Date(0) };
const FAILS: RuntimeProbe = { usable: false, reason: 'broken', version: null, released: null };

function fixture(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-probes-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const program = join(folder, 'runtime');
  writeFileSync(program, 'a build');
  let probed = 0;
  const ask = async (answer: RuntimeProbe, bootId = 'this boot') => {
    const memory = await ProbeMemory.open(folder, folder, bootId);
    return await memory.probe(['runtime'], async () => {
      probed += 1;
      return answer;
    });
  };
  return { program, folder, ask, count: () => probed };
}

test('a runtime that passed is not probed again by a later engine', async (t) => {
  const { ask, count } = fixture(t);
  assert.deepEqual(await ask(WORKS), WORKS);
  assert.deepEqual(await ask(FAILS), WORKS);
  assert.equal(count(), 1);
});

test('another build of the program is probed', async (t) => {
  const { program, ask, count } = fixture(t);
  await ask(WORKS);
  writeFileSync(program, 'a newer build');
  assert.deepEqual(await ask(FAILS), FAILS);
  assert.equal(count(), 2);
});

test('after a restart of the host everything is probed', async (t) => {
  const { ask, count } = fixture(t);
  await ask(WORKS);
  assert.deepEqual(await ask(FAILS, 'the next boot'), FAILS);
  assert.equal(count(), 2);
});

test('a failed probe is repeated each time, and all are when the file is damaged', async (t) => {
  const { folder, ask, count } = fixture(t);
  await ask(FAILS);
  await ask(WORKS);
  writeFileSync(join(folder, 'probes.json'), '{"half');
  await ask(WORKS);
  assert.equal(count(), 3);
});

test('runtimes that are probed at the same time are all usable, and all remembered', async (t) => {
  const { folder } = fixture(t);
  const programs = Array.from({ length: 50 }, (_, index) => `runtime-${index}`);
  const probeAll = async (answer: RuntimeProbe) => {
    const memory = await ProbeMemory.open(folder, folder, 'this boot');
    return await Promise.all(programs.map((program) => memory.probe([program], async () => answer)));
  };
  for (const answer of [WORKS, FAILS])
    assert.deepEqual(
      await probeAll(answer),
      programs.map(() => WORKS),
    );
});

test('a runtime that works is usable also when that cannot be written down', async (t) => {
  const { folder } = fixture(t);
  const memory = await ProbeMemory.open(join(folder, 'missing'), folder, 'this boot');
  assert.deepEqual(await memory.probe(['runtime'], async () => WORKS), WORKS);
});
