import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { tarOf, type TestEntry } from '../../packages/engine/src/testing/test-layers.ts';
import { TestEngine } from '../engine/start-engine.ts';

/** Archives of images whose headers mean harm: there are many of them, they are large, or dear to take apart. */
let engine: TestEngine;
let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-archives-'));
  engine = await TestEngine.start();
});
after(async () => {
  await engine.destroy();
  await rm(folder, { recursive: true });
});

const MIB = 1024 ** 2;
const BLOCK_BYTES = 512;

/** What makes an archive look like that of an image, or like that of a root file system. */
const KINDS = { 'docker archive': 'manifest.json', 'OCI layout': 'index.json', 'root file system': 'etc/' };

test('archives with headers without end are refused, whatever they are archives of', async () => {
  const evil: Readonly<Record<string, readonly Buffer[]>> = {
    'a header of more than a mebibyte': [await extended('x', records(2 * MIB)), await plain('a')],
    'a name without end': [await plain('n'.repeat(MIB / 2))],
    'a link to a name without end': [await link('l', 'n'.repeat(MIB / 2))],
    'fields without end that hold for all entries': [
      await extended('g', records(MIB / 2)),
      await extended('x', records(64)),
      await plain('a'),
    ],
    'fields that hold for all entries, in front of headers that no entry follows': [
      await extended('g', records(MIB / 2)),
      ...Array<Buffer>(64).fill(await extended('x', records(64))),
    ],
  };
  for (const [what, parts] of Object.entries(evil)) {
    for (const [kind, first] of Object.entries(KINDS)) {
      const bytes = Buffer.concat([await plain(first), ...parts, Buffer.alloc(2 * BLOCK_BYTES)]);
      const why = {
        code: 'invalid_image',
        message: /not an intact tar|name of more than|too long|usable target/,
      };
      await assert.rejects(importBytes(bytes), why, `${what}, ${kind}`);
    }
  }
  assert.deepEqual(readdirSync(join(engine.folder, 'images/staging')), []);
});

test('an archive of an image with folders or links without end is refused', async () => {
  for (const one of [await plain('a/'), await link('a', 'b')]) {
    const bytes = Buffer.concat([await plain('manifest.json'), ...Array<Buffer>(20_000).fill(one)]);
    await assert.rejects(importBytes(bytes), { code: 'invalid_image', message: /more than 10000 files/ });
  }
  assert.deepEqual(readdirSync(join(engine.folder, 'images/staging')), []);
});

test('the headers of an archive are not read by the thread that serves everybody', async () => {
  // As many and as large as are let through.
  const header = await extended('x', records(MIB - 1024));
  const parts = Array.from({ length: 48 }, () => header);
  const bytes = Buffer.concat([await plain('blobs/'), ...parts, await plain('index.json'), ...parts]);
  const before = processorMs(engine.pid);
  await Promise.all([
    assert.rejects(importBytes(bytes), { code: 'invalid_image' }),
    ...Array.from({ length: 10 }, () => engine.client.images.listImages()),
  ]);
  const used = processorMs(engine.pid);
  const [ofServing, ofAll] = [used.main - before.main, used.all - before.all];
  assert.ok(ofAll > 500, `it was work: ${ofAll} ms`);
  assert.ok(ofServing < ofAll / 3, `${ofServing} of ${ofAll} ms in the thread that answers`);
});

async function importBytes(bytes: Buffer): Promise<void> {
  const path = join(folder, 'archive.tar');
  await writeFile(path, bytes);
  await engine.client.images.importImage({ path, reference: 'svc/evil' });
}

async function plain(name: string): Promise<Buffer> {
  return part(name.endsWith('/') ? { name } : { name, body: '{}' });
}

async function link(name: string, linkname: string): Promise<Buffer> {
  return part({ name, linkname, type: 'symlink', body: '' });
}

/** One entry, without the end of an archive behind it. */
async function part(entry: TestEntry): Promise<Buffer> {
  return (await tarOf([entry])).subarray(0, -2 * BLOCK_BYTES);
}

/** An extended header: `x` holds for the next entry, `g` for all that follow. */
async function extended(type: 'x' | 'g', body: string): Promise<Buffer> {
  const bytes = Buffer.from(await part({ name: 'header', body }));
  bytes.write(type, 156, 'latin1');
  // The sum of the header, in which its own place counts as spaces.
  bytes.fill(' ', 148, 156);
  const sum = bytes.subarray(0, BLOCK_BYTES).reduce((total, byte) => total + byte, 0);
  bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return bytes;
}

/** Fields with names of their own, as many as fit. */
function records(bytes: number): string {
  return Array.from(
    { length: Math.floor(bytes / 16) },
    (_, place) => `16 k${`${place}`.padStart(9, '0')}=v\n`,
  )
    .join('')
    .slice(0, bytes);
}

/** Of the thread that serves, and of all threads there have been. */
function processorMs(pid: number): { readonly main: number; readonly all: number } {
  const [nanoseconds] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ');
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? [];
  return { main: Number(nanoseconds) / 1e6, all: (Number(fields[11]) + Number(fields[12])) * 10 };
}
