import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pino } from 'pino';
import { raiseHostLimits } from './raise-host-limits.ts';

test('limits of the host are raised and never lowered, and without the right to it the engine goes on', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-limits-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const logger = pino({ level: 'silent' });
  writeFileSync(join(folder, 'max_user_instances'), '128\n');
  writeFileSync(join(folder, 'max_user_watches'), '999999999\n');
  raiseHostLimits(logger, folder);
  assert.equal(readFileSync(join(folder, 'max_user_instances'), 'latin1'), '131072\n');
  assert.equal(readFileSync(join(folder, 'max_user_watches'), 'latin1'), '999999999\n');
  raiseHostLimits(logger, join(folder, 'absent'));
});
