import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import type { Advisory } from '../runtime/advisories.ts';
import type { RuntimeMount } from '../runtime/runtime.ts';
import { checkLanded, checkPlaces, refuseSharedPlaces } from './check-places.ts';

const ADVISORY: Advisory = {
  id: 'CVE-1',
  runtime: 'runc',
  fixedIn: [],
  isMendedByDebian: false,
  heldBy: '',
};

/** Each check alone: in a real start other checks back some of them up. */
suite('places of mounts', () => {
  async function rootfs(t: TestContext, links: Readonly<Record<string, string>> = {}): Promise<string> {
    const root = await mkdtemp(join(tmpdir(), 'svc-places-'));
    t.after(() => rm(root, { recursive: true }));
    for (const name of ['proc', 'sys', 'dev', '.svc', 'data'])
      if (!(`/${name}` in links)) await mkdir(join(root, name));
    for (const [path, target] of Object.entries(links)) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await symlink(target, join(root, path));
    }
    return root;
  }
  const mount = (destination: string, source: string | null = null): RuntimeMount => ({
    source,
    destination,
    sizeMib: null,
    owner: null,
    readonly: false,
    noexec: false,
    nosuid: true,
    nodev: true,
  });
  const refusal = (message: RegExp) => ({ code: 'start_failed', message });

  for (const path of ['/proc', '/sys', '/dev', '/.svc']) {
    test(`${path} is a folder of the disk, and no link to one`, async (t) => {
      const root = await rootfs(t, { [path]: '/data' });
      await assert.rejects(checkPlaces(root, []), refusal(new RegExp(`makes ${path} a link`)));
    });

    test(`no link leads a mount onto ${path}, or below it`, async (t) => {
      const root = await rootfs(t, { '/in': path, '/below/it': `..${path}` });
      for (const destination of ['/in', '/in/deeper', '/below/it'])
        await assert.rejects(
          checkPlaces(root, [mount(destination)]),
          refusal(new RegExp(`leads to ${path}`)),
        );
    });
  }

  test('no link leads a mount onto the root itself, in a circle, or out', async (t) => {
    const root = await rootfs(t, { '/all': '/', '/round': '/round', '/out': '../../../../data' });
    await assert.rejects(checkPlaces(root, [mount('/all')]), refusal(/leads to \//));
    await assert.rejects(checkPlaces(root, [mount('/round')]), refusal(/without an end/));
    assert.deepEqual(await checkPlaces(root, [mount('/out')]), []);
  });

  test('a link in a volume counts where the volume is, and its places are those that others can change', async (t) => {
    const [root, volume] = [await rootfs(t), await rootfs(t, { '/to-dev': '/dev' })];
    const below = [mount('/data', volume), mount('/data/to-dev')];
    await assert.rejects(checkPlaces(root, below), refusal(/leads to \/dev/));
    const shared = await checkPlaces(root, [mount('/data', volume), mount('/data/data/x'), mount('/tmp/y')]);
    assert.deepEqual(shared, ['/data/data/x']);
    refuseSharedPlaces(shared, []);
    assert.throws(() => refuseSharedPlaces(shared, [ADVISORY]), refusal(/lacks the fixes.*CVE-1/));
    refuseSharedPlaces([], [ADVISORY]);
  });

  test('a mount in another place is detected', async () => {
    // No first process of a sandbox has such a place; neither has this one, which is none.
    await assert.rejects(checkLanded([process.pid], ['/data/x']), refusal(/landed elsewhere/));
    await checkLanded([process.pid], []);
  });
});
