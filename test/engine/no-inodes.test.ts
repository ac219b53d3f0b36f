import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, before, test } from 'node:test';
import { PlatformError } from '@svc/contract';
import { SmallDisk } from './small-disk.ts';
import { BUSYBOX, TestEngine } from './start-engine.ts';

const image = { type: 'oci', reference: BUSYBOX } as const;

let disk: SmallDisk;
let engine: TestEngine;
before(async () => {
  disk = new SmallDisk(384, { inodes: 2048 });
  engine = await TestEngine.start({ parent: disk.folder, args: ['--isolation', 'container'] });
  for (const name of ['in-use', 'at-rest']) await engine.client.volumes.createVolume(name, 16);
  await write('in-use');
});
after(async () => {
  await engine.destroy();
  disk[Symbol.dispose]();
});

function write(volume: string): Promise<unknown> {
  return engine.client.volumes.writeVolumeFile(volume, 'note', Readable.from([Buffer.from('text')]));
}

test('without inodes on the host operations fail with the reason, and work again with new ones', async () => {
  disk.fillInodes();
  const needy = {
    'a write to a volume that is in use': () => write('in-use'),
    'a write to a volume that is mounted for it': () => write('at-rest'),
    'a new volume': () => engine.client.volumes.createVolume('another', 16),
    'a new sandbox': () => engine.client.createSandbox({ spec: { image } }),
  };
  for (const [what, work] of Object.entries(needy))
    await assert.rejects(work, (error) => {
      assert.ok(PlatformError.is(error), String(error));
      assert.match(error.message, /disk of the host has no room, or no inodes, left/, what);
      const isMount = what.includes('mounted');
      assert.equal(error.code, isMount ? 'unavailable' : 'insufficient_storage', what);
      return true;
    });
  disk.empty();
  for (const work of Object.values(needy)) await work();
});
