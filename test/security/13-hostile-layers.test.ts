import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { TestEntry } from '../../packages/engine/src/testing/test-layers.ts';
import { importConfigured } from '../engine/image-fixture.ts';
import { CLASSES, startSandbox } from '../engine/sandbox-fixture.ts';
import { TestEngine } from '../engine/start-engine.ts';

/** Layers that mean harm, from the archive to a sandbox that runs on them. */
let engine: TestEngine;
let victim: string;
let busybox: Buffer;
before(async () => {
  victim = await mkdtemp(join(tmpdir(), 'svc-victim-'));
  await writeFile(join(victim, 'file'), 'untouched');
  [engine, busybox] = await Promise.all([TestEngine.start(), readFile('/bin/busybox')]);
});
after(async () => {
  await engine.destroy();
  await rm(victim, { recursive: true });
});

function assertUntouched(): void {
  assert.deepEqual(readdirSync(victim), ['file']);
  assert.equal(readFileSync(join(victim, 'file'), 'utf8'), 'untouched');
  assert.ok(!existsSync('/svc-evil'));
}

const link = (name: string, linkname: string): TestEntry => ({ name, type: 'symlink', linkname, body: '' });
const hardLink = (name: string, linkname: string): TestEntry => ({ name, type: 'link', linkname, body: '' });

test('layers that lead out of their folder, or hold more than they show, are refused', async () => {
  const up = '../'.repeat(20);
  const evil: Readonly<Record<string, readonly TestEntry[]>> = {
    'a name that climbs': [{ name: `${up}${victim.slice(1)}/evil`, body: 'x' }],
    'an absolute name': [{ name: '/svc-evil', body: 'x' }],
    'a file below a link out': [link('out', victim), { name: 'out/evil', body: 'x' }],
    'a file below a link that climbs': [link('out', up + victim.slice(1)), { name: 'out/evil', body: 'x' }],
    'a file that replaces a link out': [link('out', join(victim, 'file')), { name: 'out', body: 'x' }],
    'a folder that becomes a link': [{ name: 'd/' }, link('d', victim), { name: 'd/evil', body: 'x' }],
    'a hard link out': [hardLink('stolen', `${up}etc/shadow`)],
    'an absolute hard link': [hardLink('stolen', '/etc/shadow')],
    'a hard link through a link': [link('etc', '/etc'), hardLink('stolen', 'etc/shadow')],
    'a hard link to a link, written through': [
      link('out', victim),
      hardLink('twin', 'out'),
      { name: 'twin/evil', body: 'x' },
    ],
    'a whiteout of the parent': [{ name: '.wh...', body: '' }],
    'a whiteout below a link': [link('out', victim), { name: 'out/.wh.file', body: '' }],
    'an opaque mark below a link': [link('out', victim), { name: 'out/.wh..wh..opq', body: '' }],
    'a sparse bomb': [{ name: 'bomb', body: 'x', pax: { 'GNU.sparse.realsize': '1099511627776' } }],
    'a name without end': [{ name: 'n'.repeat(5000), body: 'x' }],
    'a name of 256 characters': [{ name: 'n'.repeat(256), body: 'x' }],
    'a link target without end': [link('long', 'n'.repeat(5000))],
    'a name that an extended header makes climb': [{ name: 'a', body: 'x', pax: { path: `${up}svc-evil` } }],
    'a link that an extended header turns': [{ ...hardLink('a', 'b'), pax: { linkpath: '/etc/shadow' } }],
  };
  for (const [what, entries] of Object.entries(evil)) {
    const attempt = importConfigured(engine, 'svc/evil', {}, entries);
    await assert.rejects(attempt, { code: 'invalid_image' }, what);
    assertUntouched();
  }
  assert.deepEqual(readdirSync(join(engine.folder, 'images/staging')), []);
});

const nasty = (): readonly TestEntry[] => [
  { name: 'bin/busybox', body: busybox, mode: 0o755 },
  link('bin/sh', 'busybox'),
  { name: 'bin/id', body: busybox, mode: 0o6755 },
  { name: 'dev/sda', type: 'block-device', devmajor: 8, devminor: 0, mode: 0o666 },
  { name: 'dev/mem', type: 'character-device', devmajor: 1, devminor: 1, mode: 0o666 },
  { name: 'kmsg', type: 'character-device', devmajor: 1, devminor: 11, mode: 0o666 },
  { name: 'pipe', type: 'fifo' },
  { name: 'twice', body: 'first' },
  { name: 'twice', body: 'second' },
  { name: 'etc/passwd', body: 'root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/:/bin/sh\n' },
  link('shadow', '/etc/shadow'),
  link('up', '../../../../../../etc/shadow'),
  {
    name: 'attributes',
    body: 'x',
    pax: {
      'SCHILY.xattr.security.capability': 'x',
      'SCHILY.xattr.trusted.overlay.redirect': '/',
      'SCHILY.xattr.user.overlay.redirect': '/',
      'SCHILY.xattr.user.long': 'y'.repeat(3000),
      'LIBARCHIVE.xattr.security.selinux': 'x',
      uid: '99999999999',
      comment: 'c'.repeat(100_000),
    },
  },
];

for (const isolation of CLASSES) {
  test(`files of a hostile layer do no harm in a sandbox of class ${isolation}`, async () => {
    await importConfigured(engine, 'svc/nasty', {}, nasty());
    const image = { type: 'oci', reference: 'svc/nasty' } as const;
    const sandbox = await startSandbox(engine, isolation, { image });
    const output = async (script: string, user = 'root') =>
      (await sandbox.run({ cmd: '/bin/sh', args: ['-c', script], user })).stdout.trim();
    assert.equal(await output('/bin/busybox find / -xdev -type b -o -xdev -type c -o -xdev -type p'), '');
    assert.equal(await output('/bin/busybox cat /twice'), 'second');
    assert.equal(await output('/bin/busybox cat /shadow /up 2>/dev/null'), '');
    assert.equal(await output('/bin/id -u; /bin/id -g', 'user'), '1000\n1000');
    await sandbox.remove();
    assertUntouched();
  });
}
