import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openOnFakeDisk } from '../testing/fake-disk.ts';
import { body, startHealthy } from '../testing/sandboxes.ts';
import type { CodeRunner } from './code-runner.ts';

test('a run of code is noted before it begins, and does not wait for the disk', async (t) => {
  const { database, disk } = await openOnFakeDisk(t);
  const readNotes = async () =>
    (await database.selectFrom('events').select('payload').orderBy('sequence').execute()).at(-1)?.payload;
  const begun = Promise.withResolvers<string | undefined>();
  const codeRunner: CodeRunner = {
    run: async () => {
      begun.resolve(await readNotes());
      return { status: 'success', output: '42\n', error: '', truncated: false };
    },
    forget: () => undefined,
  };
  const server = await startHealthy(t, { database, isAlone: true, codeRunner });
  const made = await server.rest('POST', '/sandboxes?start=true&wait_for=running', { body: body('box') });
  disk.hold();
  const answer = await server.rest('POST', `/sandboxes/${made.body.id}/code`, {
    body: { language: 'python', code: '41 + 1' },
  });
  assert.equal(answer.status, 200);
  assert.match((await begun.promise) ?? '', /41 \+ 1/);
});
