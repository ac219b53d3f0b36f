import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { findNpm } from './find-npm.ts';

test('an npm on the PATH is found through its link', async (t) => {
  const { folder, place } = host(t);
  const home = place('lib/npm', ['semver']);
  assert.equal(await findNpm(`${join(folder, 'nothing')}:${join(folder, 'bin')}`, '/nonexistent'), home);
});

test('an npm whose modules are elsewhere is passed over for the one that set-up installed', async (t) => {
  const debian = host(t);
  debian.place('share/nodejs/npm', ['@npmcli']);
  assert.equal(await findNpm(join(debian.folder, 'bin'), '/nonexistent'), null);
  const own = host(t);
  const home = own.place('lib/npm', ['semver']);
  assert.equal(await findNpm(join(debian.folder, 'bin'), join(own.folder, 'bin')), home);
});

/** A folder with `bin`, into which an npm with some of its modules can be linked. */
function host(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-npm-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'bin'));
  const place = (path: string, modules: readonly string[]): string => {
    const home = join(folder, path);
    mkdirSync(join(home, 'bin'), { recursive: true });
    for (const name of modules) mkdirSync(join(home, 'node_modules', name), { recursive: true });
    writeFileSync(join(home, 'bin/npm-cli.js'), '');
    symlinkSync(join(home, 'bin/npm-cli.js'), join(folder, 'bin/npm'));
    return home;
  };
  return { folder, place };
}
