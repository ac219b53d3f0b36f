import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';

const exec = promisify(execFile);
const ROOT = join(import.meta.dirname, '..');
/** A machine without Go whose apt reaches no mirror, with the runsc in the folder $1; says at the end what is installed. */
const MACHINE = `
  mount -t tmpfs none /opt
  install -D "$1/runsc" /opt/svc/bin/runsc
  [ ! -d /usr/local/go ] || mount -t tmpfs none /usr/local/go
  PATH="$1:/usr/sbin:/usr/bin:/sbin:/bin" SVC_RUNSC_FROM=$3 "$2/scripts/install-runsc.sh" --force || echo "ended with $?"
  cat /opt/svc/bin/runsc`;

interface Outcome {
  readonly stdout: string;
  readonly stderr: string;
}

async function installFrom(t: TestContext, from: string, named = ''): Promise<Outcome> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-runsc-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await program(join(folder, 'runsc'), 'echo runsc version old');
  await program(join(folder, 'named'), named);
  await program(join(folder, 'apt-get'), 'exit 100');
  await program(join(folder, 'go'), 'echo go version go1.19.8 linux/amd64');
  const script = ['sh', folder, ROOT, from.replace('FOLDER', folder)];
  return await exec('unshare', ['-m', 'sh', '-c', MACHINE, ...script]);
}

test('a runsc of the operator is installed', async (t) => {
  const { stdout } = await installFrom(t, 'FOLDER/named', 'echo runsc version release-20990101');
  assert.match(stdout, /✓ runsc +runsc version release-20990101\n[^]*echo runsc version release-20990101\n$/);
});

for (const [what, from, named, expected] of [
  [
    'a file that is no runsc',
    'FOLDER/named',
    'echo something else',
    /named is no runsc: it does not print its version/,
  ],
  ['an unknown place', 'latest', '', /SVC_RUNSC_FROM is latest\n +give debian, source or the absolute path/],
  [
    'a build where no Go is to be had',
    'source',
    '',
    /no Go to build gVisor with\n +install Go 1\.21 or newer/,
  ],
] as const) {
  test(`${what} is refused, and the runsc that is there stays`, async (t) => {
    const { stdout, stderr } = await installFrom(t, from, named);
    assert.match(stderr, expected);
    assert.match(stdout, /ended with 1\n[^]*echo runsc version old\n$/);
  });
}

test('the version of gVisor that is built is pinned with its checksum', async () => {
  const [, version] =
    /\tgvisor\.dev\/gvisor (\S+)/.exec(await readFile(join(ROOT, 'scripts/gvisor/go.mod'), 'utf8')) ?? [];
  assert.match(version ?? '', /^v0\.0\.0-\d{14}-[0-9a-f]{12}$/);
  const sums = await readFile(join(ROOT, 'scripts/gvisor/go.sum'), 'utf8');
  assert.match(sums, new RegExp(`^gvisor\\.dev/gvisor ${version} h1:\\S+=$`, 'm'));
});

async function program(path: string, script: string): Promise<void> {
  await writeFile(path, `#!/bin/sh\n${script}\n`);
  await chmod(path, 0o755);
}
