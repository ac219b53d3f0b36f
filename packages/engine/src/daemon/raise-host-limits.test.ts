import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pino } from 'pino';
import { raiseHostLimits } from './raise-host-limits.ts';

test('limits of the host are raised and never lowered, and without the right to it the engine goes on', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-limits-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const logger = pino({ level: 'silent' });
  for (const table of ['fs/inotify', 'kernel/pty']) mkdirSync(join(folder, table), { recursive: true });
  writeFileSync(join(folder, 'fs/inotify/max_user_watches'), '999999999\n');
  writeFileSync(join(folder, 'kernel/pty/max'), '4096\n');
  raiseHostLimits(logger, folder);
  assert.equal(readFileSync(join(folder, 'fs/inotify/max_user_watches'), 'latin1'), '999999999\n');
  assert.equal(readFileSync(join(folder, 'kernel/pty/max'), 'latin1'), '1048576\n');
  raiseHostLimits(logger, join(folder, 'absent'));
});
