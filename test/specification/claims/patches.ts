import assert from 'node:assert/strict';
import { claim, type Claim } from '../claim.ts';
import type { Ground, Json } from '../ground.ts';
import { hostVolume, makeFolder, writeFile } from './mounts.ts';

interface Patched {
  readonly box: Json;
}

async function patchedBox(ground: Ground): Promise<Patched> {
  return await ground.shared('patched', async () => {
    const host = await hostVolume(ground);
    await makeFolder(ground, host, 'tree');
    await writeFile(ground, host, 'tree/file', 'deep');
    const patches = [
      { type: 'mkdir', path: '/app/data', mode: 0o700 },
      { type: 'text', path: '/app/text', content: 'first\n', mode: 0o600 },
      { type: 'append', path: '/app/text', content: 'second\n' },
      { type: 'file', path: '/app/bytes', content: [0, 255, 10] },
      { type: 'text', path: '/etc/group', content: 'root:x:0:\n', replace: true },
      { type: 'symlink', target: '/app/text', link: '/app/link' },
      { type: 'copy_file', src: 'tree/file', dst: '/app/copied', mode: 0o644 },
      { type: 'copy_dir', src: 'tree', dst: '/app/tree' },
      { type: 'text', path: '/app/gone', content: 'x' },
      { type: 'remove', path: '/app/gone' },
    ];
    return { box: await ground.running({ patches }) };
  });
}

/** What a script prints in the sandbox that was patched. */
async function patched(ground: Ground, script: string): Promise<string> {
  return await ground.seen((await patchedBox(ground)).box, script);
}

export const patchClaims: readonly Claim[] = [
  claim(
    'create.patches.type',
    'A change to the root file system, made in order before the first start',
    'a file that one patch made and a later one removed is not there',
    async (ground) => {
      assert.equal(await patched(ground, 'ls /app'), 'bytes\ncopied\ndata\nlink\ntext\ntree');
    },
    { covers: ['create.patches.type=remove'] },
  ),
  claim(
    'create.patches.type=text',
    'Writes a text file',
    'its content inside',
    async (ground) => {
      assert.equal(await patched(ground, 'head -n 1 /app/text'), 'first');
    },
    { covers: ['create.patches.path'] },
  ),
  claim('create.patches.type=append', 'Adds to a file', 'its content inside', async (ground) => {
    assert.equal(await patched(ground, 'cat /app/text'), 'first\nsecond');
  }),
  claim(
    'create.patches.type=file',
    'Writes a file, byte by byte',
    'its bytes inside',
    async (ground) => {
      assert.equal(await patched(ground, 'od -An -tx1 /app/bytes'), ' 00 ff 0a');
    },
    { covers: ['create.patches.content'] },
  ),
  claim(
    'create.patches.type=symlink',
    'Makes a symbolic link',
    'where it leads, inside',
    async (ground) => {
      assert.equal(await patched(ground, 'readlink /app/link'), '/app/text');
    },
    { covers: ['create.patches.target', 'create.patches.link'] },
  ),
  claim('create.patches.type=mkdir', 'Makes a folder and those above it', 'it is there', async (ground) => {
    assert.equal(await patched(ground, 'test -d /app/data && echo there'), 'there');
  }),
  claim(
    'create.patches.type=copy_file',
    'Copies a file of the host volume',
    'its content inside',
    async (ground) => {
      assert.equal(await patched(ground, 'cat /app/copied'), 'deep');
    },
    { covers: ['create.patches.src', 'create.patches.dst'] },
  ),
  claim(
    'create.patches.type=copy_dir',
    'Copies a folder of the host volume with all that is in it',
    'the content of a file in it',
    async (ground) => {
      assert.equal(await patched(ground, 'cat /app/tree/file'), 'deep');
    },
  ),
  claim(
    'create.patches.mode',
    'The permission bits, as a number',
    '`stat` of a file and of a folder',
    async (ground) => {
      assert.equal(await patched(ground, 'stat -c %a /app/text /app/data /app/copied'), '600\n700\n644');
    },
  ),
  claim(
    'create.patches.replace',
    'Whether what is there may be replaced',
    'a file of the image that was replaced; without it the start says which patch met it',
    async (ground) => {
      assert.equal(await patched(ground, 'cat /etc/group'), 'root:x:0:');
      const patches = [{ type: 'text', path: '/etc/group', content: '' }];
      const { body } = await ground.create({ patches }, '?start=true&wait_for=running&wait_timeout=90');
      assert.equal(body.status, 'failed');
      assert.match(body.last_failure_message, /patches\[0\] \(text\).*exists already; set replace to true/);
    },
    { default: '`false`' },
  ),
];
