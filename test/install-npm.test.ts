import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';

const exec = promisify(execFile);
const SCRIPT = join(import.meta.dirname, '../scripts/install-npm.sh');
const TOOLS =
  'bash sh env dirname readlink mktemp cat sed head tail curl dpkg-deb tar rm cp grep sort sha512sum'.split(
    ' ',
  );
/** Without npm and settings of npm, and away from what this machine has in /opt/svc. */
const ALONE = `
  mount -t tmpfs none /opt
  if [ -e /etc/npmrc ]; then mount --bind /dev/null /etc/npmrc; fi
  exec env -i PATH="$1" HOME="$2" "$3"`;
/** As npm has it in Debian's package of it. */
const DEFINITIONS = (registry: string): string => `
define('proxy', {
  default: null,
})
define('registry', {
  default: '${registry}',
  type: url,
})`;

test('a machine without npm and without settings of npm gets npm from its default registry', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-npm-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const asked: string[] = [];
  const registry = await startRegistry(t, asked);
  await makeDebianPackage(folder, registry);
  const bin = join(folder, 'bin');
  await mkdir(bin);
  for (const tool of TOOLS) await symlink(await pathOf(tool), join(bin, tool));
  await writeFile(
    join(bin, 'apt-get'),
    `#!/bin/sh\n[ "$*" = '-q download npm' ] && cp ${folder}/npm_1.deb .\n`,
  );
  await chmod(join(bin, 'apt-get'), 0o755);
  const words = ['-m', 'sh', '-ec', ALONE, 'sh', bin, folder, SCRIPT];
  // What the registry answers is not npm, so the script does not take it, and fails.
  const failure = await exec('unshare', words, { cwd: folder }).then(
    () => assert.fail('the file is not checked'),
    ({ stdout, stderr }: { stdout: string; stderr: string }) => stdout + stderr,
  );
  assert.deepEqual(asked, ['/npm/-/npm-10.9.9.tgz'], failure);
  assert.match(failure, /no npm registry can be reached: taking the npm of Debian/);
});

async function startRegistry(t: TestContext, asked: string[]): Promise<string> {
  const registry = createServer((request, response) => {
    asked.push(request.url ?? '');
    response.end('something else');
  }).listen(0, '127.0.0.1');
  await once(registry, 'listening');
  t.after(() => registry.close());
  return `http://127.0.0.1:${(registry.address() as AddressInfo).port}/`;
}

async function makeDebianPackage(folder: string, registry: string): Promise<void> {
  const root = join(folder, 'npm');
  const config = join(root, 'usr/share/nodejs/npm/lib/utils/config');
  await mkdir(config, { recursive: true });
  await mkdir(join(root, 'DEBIAN'));
  await writeFile(join(config, 'definitions.js'), DEFINITIONS(registry));
  const control = 'Package: npm\nVersion: 1\nArchitecture: all\nMaintainer: none\nDescription: none\n';
  await writeFile(join(root, 'DEBIAN/control'), control);
  await exec('dpkg-deb', ['-b', root, join(folder, 'npm_1.deb')]);
}

async function pathOf(tool: string): Promise<string> {
  return (await exec('sh', ['-c', 'command -v "$1"', 'sh', tool])).stdout.trim();
}
