import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import { mountDisk } from '../testing/mounted-disk.ts';
import { HostSpace } from './host-space.ts';
import { readHostWrites } from './host-writes.ts';

const MIB = 2 ** 20;
const logger = pino({ level: 'silent' });

test('disks are asked when the host has written something, set it aside or gone a while, and not otherwise', async (t) => {
  const { disk } = mountDisk(t);
  const writes = { dirtiedBytes: 0, sentBytes: 0 };
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
    looksOf(() => (writes.dirtiedBytes += MIB / 8)),
    0,
    'a little',
  );
  assert.equal(
    looksOf(() => (writes.dirtiedBytes += MIB)),
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
    'space that no counted write took',
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
  writes.dirtiedBytes = Number.NaN;
  assert.equal(
    looksOf(() => undefined),
    1,
    'where the kernel does not say',
  );
});

test('the counters of the host grow with writes', () => {
  const before = readHostWrites();
  const folder = mkdtempSync(join('/var/tmp', 'svc-host-writes-'));
  try {
    writeFileSync(join(folder, 'file'), Buffer.alloc(32 * MIB, 1), { flush: true });
  } finally {
    rmSync(folder, { recursive: true });
  }
  const now = readHostWrites();
  // The kernel adds up what each CPU has counted a moment later.
  assert.ok(now.dirtiedBytes - before.dirtiedBytes > 24 * MIB, `${now.dirtiedBytes - before.dirtiedBytes}`);
  assert.ok(now.sentBytes - before.sentBytes > 24 * MIB, `${now.sentBytes - before.sentBytes}`);
});
