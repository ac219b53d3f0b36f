import assert from 'node:assert/strict';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeTestHost } from '../testing/test-host.ts';
import { tryOverlay } from './try-overlay.ts';

test('the file system of the data folder is tried for id-mapped mounts, named if it has none, and left clean', async () => {
  await using host = await makeTestHost();
  const at = (name: string) => join(host.folder, name);
  await mkdir(at('doctor'));
  await mkdir(at('data'));
  const tryOn = (dataFolder: string) =>
    tryOverlay({ hostCalls: host.calls, folder: at('doctor'), config: { dataFolder } });
  await tryOn(at('data/not/made/yet'));

  // As a tmpfs before Linux 6.3.
  await host.run('mount', '-t', 'ramfs', 'svc-test', at('data'));
  await assert.rejects(
    tryOn(at('data/not/made/yet')),
    /map the ids of a mount, which its file system cannot/,
  );
  assert.deepEqual(await readdir(at('data')), []);
  assert.deepEqual(await host.mounts(), [at('data')]);
});
