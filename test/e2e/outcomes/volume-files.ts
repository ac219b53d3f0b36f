import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { mkdir, open, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { waitUntil } from '@svc/contract/testing';
import { encodeVolumePath, type RestOperationName } from '@svc/contract/rest';
import { Outcomes } from './outcomes.ts';
import { makeVolume } from './volumes.ts';
import { UNKNOWN_ID, type Parts, type Reply, type World } from './world.ts';

type Body = Reply['body'];
type FileOperation = Extract<RestOperationName, `volumeFiles.${string}`>;

/** Sixteen of them fill a block of a folder. */
const LONG_NAME = 244;
const run = promisify(execFile);
const header = (path: string): Parts => ({ headers: { 'x-svc-file-path': encodeVolumePath(path) } });

/** What each operation is asked, when it is about this path and, where it needs another, about a file that exists. */
const REQUESTS: Readonly<Record<FileOperation, (path: string) => Parts>> = {
  'volumeFiles.list': header,
  'volumeFiles.read': header,
  'volumeFiles.stat': header,
  'volumeFiles.exists': header,
  'volumeFiles.existMany': (path) => ({ body: { paths: [path] } }),
  'volumeFiles.write': (path) => ({ ...header(path), body: 'written' }),
  'volumeFiles.remove': header,
  'volumeFiles.mkdir': (path) => ({ body: { path } }),
  'volumeFiles.copy': (path) => ({ body: { from: path, to: 'copied' } }),
  'volumeFiles.rename': (path) => ({ body: { from: path, to: 'renamed' } }),
};
/** The table says the rest. */
const ALL = Object.keys(REQUESTS) as FileOperation[];
/** They make the folders that are missing. */
const MAKERS: ReadonlySet<FileOperation> = new Set(['volumeFiles.write', 'volumeFiles.mkdir']);
/** "No" is an answer. */
const QUESTIONS: ReadonlySet<FileOperation> = new Set(['volumeFiles.exists', 'volumeFiles.existMany']);
/** Those that change something, about a file that is to be there afterwards. */
const CHANGES: Partial<Record<FileOperation, (path: string) => Parts>> = {
  'volumeFiles.write': REQUESTS['volumeFiles.write'],
  'volumeFiles.mkdir': REQUESTS['volumeFiles.mkdir'],
  'volumeFiles.copy': (to) => ({ body: { from: 'file', to } }),
  'volumeFiles.rename': (to) => ({ body: { from: 'file', to } }),
};
const changes = Object.entries(CHANGES) as [FileOperation, (path: string) => Parts][];

let volume: Body;
const inVolume = ({ id }: Body, parts: Parts): Parts => ({ ...parts, params: { id } });

export const volumeFiles = new Outcomes();

volumeFiles.phase('files of a volume', {
  enter: async (world) => {
    volume = await makeVolume(world);
    await fill(world, volume);
    const root = mountPointOf(world, volume);
    await mkdir(join(root, 'locked'));
    await writeFile(join(root, 'locked', 'file'), 'x');
    // Only the operator of the host can set this attribute.
    await run('chattr', ['+i', join(root, 'locked')]);
  },
  leave: async (world) => {
    await run('chattr', ['-i', join(mountPointOf(world, volume), 'locked')]);
  },
});

volumeFiles.add('volumeFiles.list', 'ok', async (call) => {
  const reply = await call('volumeFiles.list', inVolume(volume, header('folder')));
  assert.deepEqual(
    reply.body.entries.map(({ path, kind }: Body) => [path, kind]),
    [['folder/inner', 'file']],
  );
  return reply;
});
volumeFiles.add('volumeFiles.read', 'ok', async (call) => {
  const reply = await call('volumeFiles.read', inVolume(volume, header('folder/inner')));
  assert.deepEqual([reply.body, reply.headers.get('content-type')], ['content', 'application/octet-stream']);
  return reply;
});
volumeFiles.add('volumeFiles.stat', 'ok', async (call) => {
  const reply = await call('volumeFiles.stat', inVolume(volume, header('folder/inner')));
  const { path, kind, size } = reply.body.metadata;
  assert.deepEqual([path, kind, size], ['folder/inner', 'file', 7]);
  return reply;
});
volumeFiles.add('volumeFiles.exists', 'ok', async (call) => {
  const missing = await call('volumeFiles.exists', inVolume(volume, header('none')));
  assert.equal(missing.body.exists, false);
  const reply = await call('volumeFiles.exists', inVolume(volume, header('file')));
  assert.equal(reply.body.exists, true);
  return reply;
});
volumeFiles.add('volumeFiles.existMany', 'ok', async (call) => {
  const body = { paths: ['none', 'file', 'folder'] };
  const reply = await call('volumeFiles.existMany', inVolume(volume, { body }));
  assert.deepEqual(reply.body.existing_paths, ['file', 'folder']);
  return reply;
});
for (const [operation, requestOf] of changes) {
  volumeFiles.add(operation, 'ok', async (call, world) => {
    await call('volumeFiles.write', inVolume(volume, { ...header('file'), body: 'content' }));
    const to = `deep/${world.fresh('to')}`;
    const reply = await call(operation, inVolume(volume, requestOf(to)));
    const { body } = await call('volumeFiles.stat', inVolume(volume, header(to)));
    assert.equal(body.metadata?.path, to, JSON.stringify(body));
    await call('volumeFiles.write', inVolume(volume, { ...header('file'), body: 'content' }));
    return reply;
  });
}
volumeFiles.add('volumeFiles.write', 'volume_file_not_found', async (call, world) => {
  const folder = world.fresh('folder');
  const body = new ReadableStream<Uint8Array>({
    // The folder that it is for was made when the upload began, and is removed before its end.
    async start(upload) {
      upload.enqueue(Buffer.from('first'));
      const at = inVolume(volume, header(folder));
      const isThere = async () => (await call('volumeFiles.exists', at)).body.exists === true;
      await waitUntil(isThere, { timeoutMs: 60_000, what: 'the folder of the upload is made' });
      const recursive = { ...at.headers, 'x-svc-file-recursive': 'true' };
      await call('volumeFiles.remove', { ...at, headers: recursive });
      upload.close();
    },
  });
  return await call('volumeFiles.write', inVolume(volume, { ...header(`${folder}/file`), body }));
});
volumeFiles.add('volumeFiles.remove', 'ok', async (call, world) => {
  const path = world.fresh('leaving');
  await call('volumeFiles.write', inVolume(volume, { ...header(path), body: 'x' }));
  const reply = await call('volumeFiles.remove', inVolume(volume, header(path)));
  assert.equal((await call('volumeFiles.exists', inVolume(volume, header(path)))).body.exists, false);
  return reply;
});

for (const operation of ALL) {
  const request = REQUESTS[operation];
  volumeFiles.add(operation, 'invalid_volume_path', async (call) => {
    return await call(operation, inVolume(volume, request('../outside')));
  });
  volumeFiles.add(operation, 'volume_not_found', async (call) => {
    return await call(operation, inVolume({ id: UNKNOWN_ID }, request('file')));
  });
  if (!MAKERS.has(operation) && !QUESTIONS.has(operation)) {
    volumeFiles.add(operation, 'volume_file_not_found', async (call) => {
      return await call(operation, inVolume(volume, request('none')));
    });
  }
}
for (const [operation, requestOf] of changes) {
  volumeFiles.add(operation, 'forbidden', async (call) => {
    return await call(operation, inVolume(volume, requestOf('locked/new')));
  });
}
volumeFiles.add('volumeFiles.remove', 'forbidden', async (call) => {
  return await call('volumeFiles.remove', inVolume(volume, header('locked/file')));
});

let full: Body;
volumeFiles.phase('files of a volume that is full', {
  enter: async (world) => {
    full = await makeVolume(world);
    await fill(world, full);
    const root = mountPointOf(world, full);
    await crowd(join(root, 'crowded'));
    await useUp(root);
  },
});
for (const [operation, requestOf] of changes) {
  volumeFiles.add(operation, 'disk_full', async (call, world) => {
    // A file that is moved needs room for its name only.
    const to = `crowded/${world.fresh('x'.repeat(LONG_NAME - 9))}`;
    return await call(operation, inVolume(full, requestOf(to)));
  });
}

let broken: Body;
volumeFiles.phase('files of a volume whose disk is damaged', {
  enter: async (world) => {
    broken = await makeVolume(world);
    await using image = await open(join(folderOf(world, broken), 'image.ext4'), 'r+');
    await image.write(Buffer.alloc(64 * 1024), 0, 64 * 1024, 0);
  },
});
for (const operation of ALL) {
  volumeFiles.add(operation, 'unavailable', async (call) => {
    return await call(operation, inVolume(broken, REQUESTS[operation]('file')));
  });
}

let leaving: Body;
volumeFiles.outage('files of volumes', {
  prepare: async (world) => {
    leaving = await makeVolume(world);
  },
  enter: async (world) => {
    const removed = await world.caller('key')('volumes.remove', { params: { id: leaving.id } });
    assert.equal(removed.status, 200);
  },
});
for (const operation of ALL) {
  volumeFiles.add(operation, 'orchestrator_unreachable', async (call) => {
    return await call(operation, inVolume(volume, REQUESTS[operation]('file')));
  });
  volumeFiles.add(operation, 'invalid_state_transition', async (call) => {
    return await call(operation, inVolume(leaving, REQUESTS[operation]('file')));
  });
}

async function fill(world: World, { id }: Body): Promise<void> {
  const call = world.caller('key');
  for (const path of ['file', 'folder/inner']) {
    const reply = await call('volumeFiles.write', { ...header(path), params: { id }, body: 'content' });
    assert.equal(reply.status, 200, JSON.stringify(reply.body));
  }
}

/** Makes a folder whose one block has no room for another long name. */
async function crowd(folder: string): Promise<void> {
  await mkdir(folder);
  for (let count = 10; count < 26; count += 1) {
    await writeFile(join(folder, `${count}${'x'.repeat(LONG_NAME - 2)}`), '');
  }
}

/** Not one block is left, nor one of those that the file system keeps for root. */
async function useUp(root: string): Promise<void> {
  for (let size = 1024 ** 3; size >= 1024; size /= 2) {
    const file = join(root, `filler-${size}`);
    await run('fallocate', ['-l', String(size), file]).catch(() => undefined);
  }
  for (let count = 0; count < 64; count += 1) {
    const isFull = await writeFile(join(root, `last-${count}`), Buffer.alloc(4096)).catch(() => true);
    if (isFull === true) return;
  }
  assert.fail('the volume cannot be filled');
}

/** Where the host has the volume mounted, which it is while its files are used. */
function mountPointOf(world: World, volume: Body): string {
  const folder = folderOf(world, volume);
  const lines = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  const found = lines.map((line) => line.split(' ')[4] ?? '').find((path) => path.startsWith(`${folder}/`));
  assert.ok(found, `${folder} is not mounted`);
  return found;
}

/** What the engine keeps of a volume. */
function folderOf({ server }: World, { id }: Body): string {
  const records = globSync(join(server.engine.folder, 'volumes', '*', 'volume.json'));
  const record = records.find((path) => (JSON.parse(readFileSync(path, 'utf8')) as { id: string }).id === id);
  assert.ok(record, `the engine has no volume ${id}`);
  return dirname(record);
}
