import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeDisk } from './describe-disk.ts';

const GIB = 1024 ** 3;
const DISK = {
  freeBytes: 2 * GIB,
  totalBytes: 8 * GIB,
  reserveBytes: GIB,
  promisedBytes: GIB,
  isShort: false,
};
const SOUND =
  'disk: 2.0 GiB of 8.0 GiB free, 1.0 GiB of it kept; disks and volumes in use may grow by 1.0 GiB';

test('a disk is described by its room, and by nothing else when it fails', () => {
  assert.equal(describeDisk({ ...DISK, fault: null }), SOUND);
  assert.equal(describeDisk({ ...DISK, fault: 'disk: it fails' }), 'disk: it fails');
});

test('the disk of a server that was started before an upgrade is described too', () => {
  assert.equal(describeDisk(DISK), SOUND);
});
