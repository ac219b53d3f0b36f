import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noteStop } from './note-stop.ts';

function stopOf(timings: Readonly<Record<string, number>>): { notes: string[]; warnings: unknown[] } {
  const notes: string[] = [];
  const warnings: unknown[] = [];
  const logger = { warn: (fields: unknown) => void warnings.push(fields) };
  noteStop(logger, { note: (level, text) => void notes.push(`${level} ${text}`) }, 'h1', timings);
  return { notes, warnings };
}

test('a stop is told with its steps in the log of the sandbox alone', () => {
  const { notes, warnings } = stopOf({ processes: 6, disk: 3.5, total: 12 });
  assert.deepEqual(notes, ['debug its run has been ended: processes 6 ms, disk 3.5 ms, total 12 ms']);
  assert.deepEqual(warnings, []);
});

test('one that took long is told in the log of the engine too', () => {
  const timings = { processes: 4000, total: 4010 };
  assert.deepEqual(stopOf(timings).warnings, [{ handle: 'h1', timings }]);
});
