import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, rmdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startTestServer } from '../testing/test-server.ts';

test('a full disk is said to be full, breaks nothing, and is forgotten once there is room', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-disk-full-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'svc-disk-full', folder]);
  t.after(async () => {
    execFileSync('umount', ['-l', folder]);
    await rmdir(folder);
  });
  const server = await startTestServer(t, { folder });
  const start = (sandbox: string, code = '') =>
    server.call('sandbox.start', { sandbox, config: { image: 'x', scripts: { code } } });
  assert.equal((await start('before')).error, undefined);

  const filler = join(folder, 'filler');
  await fill(filler);
  const refused = await start('during', 'x'.repeat(100_000));
  assert.equal(refused.error?.code, -32_603);
  assert.equal(
    refused.error.message,
    'sandbox start failed: the disk of the data directory is full; free some space and try again. ' +
      'Your organization takes 1.00 GiB, most of it sandbox before 1.00 GiB',
  );
  const reported = refused.error.data as { code: string; used_bytes: number };
  assert.deepEqual([reported.code, reported.used_bytes], ['insufficient_storage', 1024 ** 3]);
  const seen = await server.call('sandbox.metrics.get', {});
  assert.deepEqual(
    (seen.result as unknown as { sandboxes: { name: string }[] }).sandboxes.map(({ name }) => name),
    ['before'],
  );
  assert.equal(
    (await server.call('sandbox.command.run', { sandbox: 'before', command: 'true' })).error,
    undefined,
  );

  await rm(filler);
  assert.equal((await start('during', 'x'.repeat(100_000))).error, undefined);
});

/** In pieces that get smaller, until not one byte fits. */
async function fill(path: string): Promise<void> {
  for (const bytes of [65_536, 4096, 1]) {
    let isFull = false;
    while (!isFull) {
      isFull = await writeFile(path, Buffer.alloc(bytes), { flag: 'a' }).then(
        () => false,
        () => true,
      );
    }
  }
}
