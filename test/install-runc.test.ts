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

/** A machine whose apt has no mirror of Debian. */
const NO_MIRROR = `
  mount -t tmpfs none /etc/apt
  mount --bind "$1/os-release" /etc/os-release
  ${OLD_MACHINE}`;

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

test("Ubuntu, whose apt has no mirror of Debian, gets Debian's build from the mirror that is named", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-runc-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await program(join(folder, 'runc'), 'echo runc version 1.1.5');
  await writeFile(join(folder, 'os-release'), 'ID=ubuntu\n');
  // Keeps the list of sources that it was called with, as "-o Dir::Etc::sourcelist=FILE".
  const keep = `for word; do case $word in *sourcelist=*) cp "\${word#*=}" ${folder}/sources;; esac; done`;
  await program(join(folder, 'apt-get'), `case $1 in indextargets) ;; *) ${keep}; exit 100;; esac`);
  const output = async (named: string) => {
    const env = { ...process.env, SVC_DEBIAN_MIRROR: named };
    return (await exec('unshare', ['-m', 'sh', '-ec', NO_MIRROR, 'sh', folder, SCRIPTS], { env })).stdout;
  };
  assert.match(await output(''), /no Debian mirror in the configuration of apt; name one: SVC_DEBIAN_MIRROR/);
  assert.doesNotMatch(await output('http://127.0.0.1:9/debian'), /no Debian mirror/);
  const sources = await readFile(join(folder, 'sources'), 'utf8');
  const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg';
  assert.equal(sources, `deb [signed-by=${keyring}] http://127.0.0.1:9/debian forky main\n`);
});

async function program(path: string, script: string): Promise<void> {
  await writeFile(path, `#!/bin/sh\n${script}\n`);
  await chmod(path, 0o755);
}
