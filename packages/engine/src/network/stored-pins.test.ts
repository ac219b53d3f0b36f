import assert from 'node:assert/strict';
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { parseAddress } from '../policy/address.ts';
import { StoredPins } from './stored-pins.ts';

const [ONE, OTHER] = ['172.16.0.2', '172.16.0.6'];
const address = parseAddress('93.184.215.9');
assert.ok(address);
const pin = (name: string, seconds = 60) => ({ name, address, seconds });
const warnings: unknown[] = [];
const logger = { warn: (...words: readonly unknown[]) => void warnings.push(words) };

function fileFor(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-pins-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return join(folder, 'pins.jsonl');
}

const namesOf = (pins: StoredPins, client: string) => pins.of(client).map(({ name }) => name);

test('the next engine has the resolved addresses of running sandboxes', (t) => {
  const file = fileFor(t);
  const first = new StoredPins(file, logger);
  first.keep(ONE, [pin('a.test'), pin('b.test'), pin('over.test', 0)]);
  first.keep(OTHER, [pin('c.test')]);
  // As a kill leaves it.
  appendFileSync(file, '{"client":"172.16');
  const next = new StoredPins(file, logger);
  next.load(new Set([ONE]));
  assert.deepEqual(namesOf(next, ONE), ['a.test', 'b.test']);
  assert.ok(next.of(ONE).every(({ seconds }) => seconds > 0 && seconds <= 60));
  assert.deepEqual([...next.byAddress().keys()], [ONE]);
  assert.ok(!readFileSync(file, 'utf8').includes(OTHER), 'the next sandbox with the address gets no names');
});

test('a new sandbox with the address of an earlier one gets none of its pins', (t) => {
  const file = fileFor(t);
  const first = new StoredPins(file, logger);
  first.keep(ONE, [pin('a.test')]);
  first.forget(ONE);
  first.keep(ONE, [pin('b.test')]);
  assert.deepEqual(namesOf(first, ONE), ['b.test']);
  const next = new StoredPins(file, logger);
  next.load(new Set([ONE]));
  assert.deepEqual(namesOf(next, ONE), ['b.test']);
});

test('repeated queries grow neither the file nor the memory', (t) => {
  const file = fileFor(t);
  const pins = new StoredPins(file, logger);
  for (let count = 0; count < 10_000; count++) pins.keep(ONE, [pin('a.test')]);
  assert.ok(readFileSync(file, 'utf8').split('\n').length < 10_000);
  pins.keep(
    ONE,
    Array.from({ length: 5000 }, (_, index) => pin(`n${index}.test`)),
  );
  assert.equal(pins.of(ONE).length, 4096);
});

test('a failed write is a warning, and pins stay in memory', () => {
  const pins = new StoredPins('/proc/no-such-folder/pins.jsonl', logger);
  pins.keep(ONE, [pin('a.test')]);
  assert.deepEqual(namesOf(pins, ONE), ['a.test']);
  assert.equal(warnings.length, 1);
});
