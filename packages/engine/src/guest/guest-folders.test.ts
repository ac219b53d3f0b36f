import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { GuestFolders } from './guest-folders.ts';

test('only root of a sandbox can open the files that it shares with its engine', async (t) => {
  const run = mkdtempSync(join(tmpdir(), 'svc-guest-folders-'));
  t.after(() => rmSync(run, { recursive: true, force: true }));
  chmodSync(run, 0o711);
  writeFileSync(join(run, 'program'), '');
  const folders = new GuestFolders(run);
  await folders.prepare(join(run, 'program'));
  const owner = 1_200_000_000;
  const content = { meminfo: '', cpuinfo: '', cpuOnline: '', scripts: { hello: 'echo private' } };
  const { path } = folders.create('0123456789abcdef', owner, content);
  const readAs = (id: number) =>
    execFileSync('cat', [join(path, 'scripts/hello')], { uid: id, gid: id, stdio: 'pipe' }).toString();
  assert.equal(readAs(owner), 'echo private');
  assert.throws(() => readAs(65_534), /denied/);
  assert.throws(() => readAs(owner + 65_536), /denied/);
  folders.remove('0123456789abcdef');
  assert.equal(folders.exists('0123456789abcdef'), false);
});

test('a script whose name leads out of its folder is not written', async (t) => {
  const run = mkdtempSync(join(tmpdir(), 'svc-guest-folders-'));
  t.after(() => rmSync(run, { recursive: true, force: true }));
  writeFileSync(join(run, 'program'), 'the init of every sandbox');
  const folders = new GuestFolders(run);
  await folders.prepare(join(run, 'program'));
  const content = { meminfo: '', cpuinfo: '', cpuOnline: '' };
  for (const name of ['../init', '../../../outside', '..', '.', '', 'a/b']) {
    const scripts = { [name]: 'mine now' };
    assert.throws(
      () => folders.create('0123456789abcdef', 0, { ...content, scripts }),
      /is not a script name/,
    );
  }
  assert.equal(existsSync(join(run, 'outside')), false);
});
