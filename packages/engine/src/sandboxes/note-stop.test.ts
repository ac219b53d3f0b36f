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

test('a stop is logged with its steps only in the log of the sandbox', () => {
  const { notes, warnings } = stopOf({ processes: 6, disk: 3.5, total: 12 });
  assert.deepEqual(notes, ['debug its run has been ended: processes 6 ms, disk 3.5 ms, total 12 ms']);
  assert.deepEqual(warnings, []);
});

test('a slow stop is logged by the engine too', () => {
  const timings = { processes: 4000, total: 4010 };
  assert.deepEqual(stopOf(timings).warnings, [{ handle: 'h1', timings }]);
});
