import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mountsBelow } from './mounts-below.ts';

const MOUNTINFO = `27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
42 27 0:4 / /run/a rw - tmpfs tmpfs rw
43 42 0:4 / /run/a/one\\040two rw - tmpfs tmpfs rw
44 43 0:4 / /run/a/one\\040two/three rw - tmpfs tmpfs rw
45 27 0:4 / /run/ab rw - tmpfs tmpfs rw
`;

test('mounts inside a folder are found, innermost first; the folder itself and its namesakes are not', () => {
  assert.deepEqual(mountsBelow('/run/a', MOUNTINFO), ['/run/a/one two/three', '/run/a/one two']);
  assert.deepEqual(mountsBelow('/nowhere', MOUNTINFO), []);
});
