import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { PlatformError } from '@svc/contract/errors';
import { command } from '../testing/command.ts';
import { PendingWrites } from './pending-writes.ts';

test('a write on a host without inodes says that the host is full, and the next one works when there are some', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-inodes-'));
  // One inode for the root of the file system, and one for a note.
  await command('mount', '-t', 'tmpfs', '-o', 'nr_inodes=2,size=1m', 'svc-inodes', folder);
  t.after(async () => {
    await command('umount', folder);
    await rm(folder, { recursive: true, force: true });
  });
  const pending = new PendingWrites(folder);
  const { note } = await pending.begin('/');
  await assert.rejects(pending.begin('/'), (error) => PlatformError.is(error, 'insufficient_storage'));
  await pending.end(note);
  await pending.begin('/');
  assert.equal((await readdir(folder)).length, 1);
});
