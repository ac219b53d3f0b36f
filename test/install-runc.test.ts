import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

const exec = promisify(execFile);
const SCRIPTS = join(import.meta.dirname, '../scripts');
/** A machine with an old runc of its own and without ours; $1: a folder with an apt that cannot reach its mirror. */
const OLD_MACHINE = `
  mount -t tmpfs none /opt
  mount --bind "$1/runc" /usr/sbin/runc
  export PATH="$1:$PATH"
  install="$2/install-runc.sh"
  "$install"; echo SECOND; "$install"; echo FORCED; "$install" --force
  touch -d '2 days ago' /opt/svc/lib/unavailable/runc
  echo LATER; "$install"`;

test('a build that the mirror did not have is asked for again after a day, or with --force', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-runc-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await program(join(folder, 'runc'), 'echo runc version 1.1.5');
  // The mirror of the machine is known; its lists cannot be renewed.
  const mirror = '*indextargets*) echo Debian http://127.0.0.1:9/debian/;;';
  await program(
    join(folder, 'apt-get'),
    `case "$*" in ${mirror} *) echo asked >>${folder}/asked; exit 100;; esac`,
  );
  const { stdout } = await exec('unshare', ['-m', 'sh', '-ec', OLD_MACHINE, 'sh', folder, SCRIPTS]);
  const [first = '', second = '', forced = '', later = ''] = stdout.split(/SECOND|FORCED|LATER/);
  for (const text of [first, forced, later]) assert.match(text, /fetching Debian.*\n.*no runc of Debian/);
  assert.match(second, /not to be had within the last day \(to try now: make runc\)\n$/);
  assert.doesNotMatch(second, /fetching/);
  assert.equal((await readFile(join(folder, 'asked'), 'utf8')).split('\n').length - 1, 3);
});

async function program(path: string, script: string): Promise<void> {
  await writeFile(path, `#!/bin/sh\n${script}\n`);
  await chmod(path, 0o755);
}
