import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { PlatformError } from '@svc/contract/errors';
import { readAptSetup } from './apt-sources.ts';

test('only the sources of the host’s own release are taken, in either format', async (t) => {
  const { folder, osRelease } = await aptFolder(t, {
    'sources.list':
      'deb [signed-by=/k.gpg arch=amd64] http://one.test/debian bookworm main contrib # x\ndeb-src http://one.test/debian bookworm main\n# deb http://off.test bookworm main\n',
    'sources.list.d/debian.sources':
      'Types: deb\nURIs: http://two.test/debian\nSuites: bookworm bookworm-updates\nComponents: main\nSigned-By: /k.gpg\n\nTypes: deb\nURIs: http://vendor.test\nSuites: nodistro\nComponents: main\n',
    'sources.list.d/off.sources':
      'Enabled: no\nTypes: deb\nURIs: http://off.test\nSuites: bookworm\nComponents: main\n',
    'sources.list.d/vendor.list': 'deb http://vendor.test/apt vendor-bookworm main\n',
    'sources.list.d/old.list.save': 'deb http://old.test bookworm main\n',
  });
  const { suite, sources } = await readAptSetup(folder, osRelease);
  assert.equal(suite, 'bookworm');
  assert.deepEqual(sources.match(/http:\S+/g), ['http://one.test/debian', 'http://two.test/debian']);
  assert.equal(sources.match(/Signed-By: \/k\.gpg/g)?.length, 2);
});

test('Ubuntu’s own sources are taken as it lists them', async (t) => {
  const ubuntu = '# See the help of Ubuntu\nTypes: deb\nURIs: http://one.test/ubuntu/\n';
  const { folder, osRelease } = await aptFolder(
    t,
    {
      'sources.list': '# Moved to sources.list.d/ubuntu.sources\n',
      'sources.list.d/ubuntu.sources': `${ubuntu}Suites: noble noble-updates noble-backports\nComponents: main universe restricted multiverse\nSigned-By: /k.gpg\n\n${ubuntu}Suites: noble-security\nComponents: main universe\nSigned-By: /k.gpg\n`,
    },
    'NAME="Ubuntu"\nVERSION_CODENAME=noble\nUBUNTU_CODENAME=noble\n',
  );
  const { suite, sources } = await readAptSetup(folder, osRelease);
  assert.equal(suite, 'noble');
  assert.deepEqual(sources.match(/^Suites: .*/gm), [
    'Suites: noble noble-updates noble-backports',
    'Suites: noble-security',
  ]);
});

test('a host without such sources is told so, with what to do instead', async (t) => {
  const { folder, osRelease } = await aptFolder(t, { 'sources.list': 'deb http://x.test other main\n' });
  for (const release of [osRelease, join(folder, 'nowhere')]) {
    await assert.rejects(
      readAptSetup(folder, release),
      (error) => PlatformError.is(error, 'unavailable') && /import one/.test(error.message),
    );
  }
});

async function aptFolder(
  t: TestContext,
  files: Readonly<Record<string, string>>,
  release = 'PRETTY_NAME="x"\nVERSION_CODENAME=bookworm\n',
) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-apt-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await mkdir(join(folder, 'sources.list.d'));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  const osRelease = join(folder, 'os-release');
  await writeFile(osRelease, release);
  return { folder, osRelease };
}
