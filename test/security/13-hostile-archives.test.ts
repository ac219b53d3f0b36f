import assert from 'node:assert/strict';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { waitUntil } from '@svc/contract/testing';
import { tarOf, type TestEntry } from '../../packages/engine/src/testing/test-layers.ts';
import { commandOf, descendantsOf, isAlive } from '../engine/process-tree.ts';
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

test('archives of every kind with endless headers are refused', async () => {
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

test('the reader of an archive has no rights, and ends with the archive, its engine or its caller', async () => {
  // As many headers as large as are let through, in an archive that is compressed: work for half a second.
  const header = await extended('x', records(MIB - 1024));
  const parts = Array.from({ length: 12 }, () => header);
  const bytes = gzipSync(
    Buffer.concat([await plain('blobs/'), ...parts, await plain('index.json'), ...parts]),
    { level: 1 },
  );

  const refusal = assert.rejects(importBytes(bytes), { code: 'invalid_image' });
  const readers = await catchReaders();
  for (const pid of Object.values(readers)) assertPowerless(pid);
  letGo(readers);
  await refusal;
  assert.deepEqual(Object.values(readers).filter(isAlive), [], 'they end with the archive');

  const killed = assert.rejects(importBytes(bytes), { code: 'internal' });
  const caught = await catchReaders();
  process.kill(caught.node, 'SIGKILL');
  letGo(caught);
  await killed;
  assert.deepEqual(readdirSync(join(engine.folder, 'images/staging')), []);

  const lost = assert.rejects(importBytes(bytes));
  // Also those that do nothing any more.
  const orphans = await catchReaders();
  await engine.kill();
  await lost;
  await waitUntil(() => Object.values(orphans).every((pid) => !isAlive(pid)), 'they end with the engine');
  await engine.launch();
  assert.deepEqual(readdirSync(join(engine.folder, 'images/staging')), []);
});

interface Readers {
  /** Reads headers. */
  readonly node: number;
  /** Decompresses. */
  readonly zstd: number;
}

/**
 * Those of our engine, once both have become what they are to be: until then they are svc-host. From then on they are stopped, so that
 * the test can examine them.
 */
async function catchReaders(): Promise<Readers> {
  let readers: Readers | undefined;
  await waitUntil(() => {
    const tree = descendantsOf(engine.pid);
    const node = tree.find((pid) => commandOf(pid)[0] === '/.svc-node');
    const zstd = tree.find((pid) => commandOf(pid)[0] === 'zstd');
    if (node === undefined || zstd === undefined) return false;
    readers = { node, zstd };
    const areHeld = Object.values(readers).every((pid) => send(pid, 'SIGSTOP'));
    if (!areHeld) letGo(readers);
    return areHeld;
  }, 'the archive is being read');
  return readers ?? assert.fail('no process reads it');
}

function letGo(readers: Readers): void {
  for (const pid of Object.values(readers)) send(pid, 'SIGCONT');
}

/** @returns whether it was still there */
function send(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    // It has ended meanwhile.
    return false;
  }
}

function assertPowerless(pid: number): void {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const field = (key: string) => new RegExp(`^${key}:[ \\t]+(.*)$`, 'm').exec(status)?.[1] ?? '';
  for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) assert.match(field(set), /^0+$/, set);
  assert.deepEqual([field('Seccomp'), field('NoNewPrivs'), field('Groups').trim()], ['2', '1', '']);
  assert.match(field('Uid'), /^268042240\s/);
  for (const kind of ['user', 'net', 'mnt', 'pid', 'ipc', 'uts']) {
    const own = readlinkSync(`/proc/${pid}/ns/${kind}`);
    assert.notEqual(own, readlinkSync(`/proc/self/ns/${kind}`), `a ${kind} namespace of its own`);
  }
  const seen = readdirSync(`/proc/${pid}/root`).filter((name) => !PROGRAMS_INSIDE.has(name));
  assert.deepEqual(seen.toSorted(), ['bin', 'dev', 'lib', 'lib64', 'proc', 'usr']);
}

/** What it runs; all that it sees besides lies in every Debian. */
const PROGRAMS_INSIDE = new Set(['.svc-host', '.svc-node', '.svc-archives.js']);

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
