import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import { mountDisk } from '../testing/mounted-disk.ts';
import { HostSpace } from './host-space.ts';

const MIB = 2 ** 20;
const logger = pino({ level: 'silent' });

test('disks are asked when the host has written something, set it aside or gone a while, and not otherwise', async (t) => {
  const { disk } = mountDisk(t);
  const writes = { dirtiedPages: 0, sentBytes: 0 };
  let looks = 0;
  const folder = disk.mountPoint;
  const onLook = () => void looks++;
  const space = new HostSpace({
    folder,
    logger,
    reserveBytes: MIB,
    onLook,
    readWrites: () => ({ ...writes }),
  });
  t.after(() => space.stop());
  const looksOf = (change: () => void) => {
    change();
    const before = looks;
    // Only the look that is made at once: the one of the timer is another.
    space.start();
    space.stop();
    return looks - before;
  };
  assert.equal(
    looksOf(() => undefined),
    1,
    'the first',
  );
  while (space.view().ballastBytes === 0) await delay(5);
  looksOf(() => (writes.sentBytes += MIB));
  assert.equal(
    looksOf(() => (writes.dirtiedPages += 8)),
    0,
    'a little',
  );
  assert.equal(
    looksOf(() => (writes.dirtiedPages += 64)),
    1,
  );
  assert.equal(
    looksOf(() => (writes.sentBytes += MIB)),
    1,
    'past the page cache',
  );
  const file = join(folder, 'file');
  assert.equal(
    looksOf(() => writeFileSync(file, Buffer.alloc(4 * MIB, 1))),
    1,
    'by whoever does not count',
  );
  assert.equal(
    looksOf(() => rmSync(file)),
    0,
  );
  await delay(1000);
  assert.equal(
    looksOf(() => undefined),
    1,
    'now and then in any case',
  );
  writes.dirtiedPages = Number.NaN;
  assert.equal(
    looksOf(() => undefined),
    1,
    'where the kernel does not say',
  );
});
