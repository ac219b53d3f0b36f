import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

const SOURCES = ['pauses-probe.c', '../src/pauses.c'].map((name) => join(import.meta.dirname, name));
let folder: string;
let probe: string;
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-pauses-'));
  probe = join(folder, 'probe');
  const flags = ['-std=gnu17', '-D_GNU_SOURCE', '-O1', '-Wl,--wrap=nanosleep'];
  execFileSync('gcc', [...flags, '-o', probe, ...SOURCES]);
});
after(() => rmSync(folder, { recursive: true }));

test('a quick call is interrupted only briefly, and not after its end', () => {
  const { status, stdout } = spawnSync(probe, ['0.01'], { encoding: 'utf8' });
  assert.equal(status, 0);
  assert.match(stdout, /^\d+\n$/);
});

test('a call longer than the time between interruptions completes', () => {
  const { status, stdout } = spawnSync(probe, ['3'], { encoding: 'utf8' });
  assert.equal(status, 0, 'it gave up');
  assert.ok(Number(stdout) > 16, `${stdout} interruptions`);
});
