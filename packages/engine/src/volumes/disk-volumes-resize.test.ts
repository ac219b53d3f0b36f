import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { DiskVolumes } from './disk-volumes.ts';
import { makeRealHost, type RealHost } from '../testing/volumes-host.ts';
import { content, readText, rejectsWith, soon } from './volumes.suite.ts';

async function openVolume(host: RealHost): Promise<DiskVolumes> {
  const volumes = host.open();
  await volumes.recover(new Map());
  await volumes.create('vol', 32, soon());
  return volumes;
}

test('a volume can be resized while its files are in use, and no call is lost', async () => {
  await using host = await makeRealHost();
  const volumes = await openVolume(host);
  const files = volumes.files('vol');
  await files.write('file', content('kept'), soon());
  await Promise.all([
    ...Array.from({ length: 20 }, (_, index) => files.write(`new${index}`, content('x'), soon())),
    volumes.resize('vol', 48, soon()),
    ...Array.from({ length: 20 }, () => readText(files, 'file')),
  ]);
  assert.equal((await volumes.get('vol'))?.capacityMib, 48);
  assert.equal(await readText(files, 'file'), 'kept');
});

test('a volume in use grows where the host allows it; shrinking waits until it is unused', async () => {
  await using host = await makeRealHost();
  const volumes = await openVolume(host);
  const root = await volumes.attach('vol', 'sandbox', soon());
  await writeFile(join(root, 'file'), 'kept');
  await rejectsWith(volumes.resize('vol', 16, soon()), 'volume_in_use');
  const capabilities = BigInt(
    `0x${/CapEff:\s*(\w+)/.exec(await readFile('/proc/self/status', 'utf8'))?.[1]}`,
  );
  const canResizeMounted = (capabilities & (1n << 24n)) !== 0n;
  if (canResizeMounted) assert.equal((await volumes.resize('vol', 64, soon())).capacityMib, 64);
  else await rejectsWith(volumes.resize('vol', 64, soon()), 'volume_in_use');
  assert.equal(await readFile(join(root, 'file'), 'utf8'), 'kept');
  await volumes.detach('vol', 'sandbox');
  assert.equal((await volumes.resize('vol', 80, soon())).capacityMib, 80);
  assert.equal(await readText(volumes.files('vol'), 'file'), 'kept');
});
