import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Dirent } from 'node:fs';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { waitUntil } from '@svc/contract/testing';
import type { Channel, Frame } from './channel.ts';
import { Engine, releaseBinary, shell } from './engine.ts';
import type { EngineOptions } from './engine.ts';

/** Events that the kernel keeps. */
const KERNEL_QUEUE = Number(readFileSync('/proc/sys/fs/inotify/max_queued_events', 'utf8'));
const TIMEOUT_MS = 60_000;

interface Change {
  readonly type: string;
  readonly path: string;
  readonly kind: string | null;
  readonly from: string | null;
}

/** One watch of a test: its changes are kept in order, as "type path" with "/" behind folders and "from>" before. */
class Watch {
  readonly changes: string[] = [];
  readonly id: number;
  onChange: (change: Change) => void = () => undefined;
  readonly #channel: Channel;

  private constructor(channel: Channel, id: number) {
    this.#channel = channel;
    this.id = id;
  }

  static async start(channel: Channel, path: string, recursive = false): Promise<Watch> {
    const watch = new Watch(channel, channel.newId());
    channel.send(watch.id, 'svc.watch.start', { path, recursive });
    const { payload } = await channel.takeType('svc.watch.started', watch.id, TIMEOUT_MS);
    assert.match(payload['kind'] as string, /^(dir|file)$/);
    return watch;
  }

  /** Takes frames up to the first change that is this one. */
  async until(change: string): Promise<string[]> {
    for (let seen = 0; !this.changes.includes(change, seen);) {
      seen = this.changes.length;
      this.#keep(await this.#next());
    }
    return this.changes;
  }

  /** The last message; changes before it are kept. */
  async end(): Promise<Frame> {
    for (;;) {
      const frame = await this.#next();
      if ((frame.flags & 1) === 1) return frame;
      this.#keep(frame);
    }
  }

  #next(): Promise<Frame> {
    return this.#channel.take((frame) => frame.id === this.id, 'changes', TIMEOUT_MS);
  }

  #keep(frame: Frame): void {
    assert.equal(frame.type, 'svc.watch.events', JSON.stringify(frame));
    for (const change of frame.payload['events'] as Change[]) {
      this.changes.push(describe(change));
      this.onChange(change);
    }
  }
}

function describe({ type, path, kind, from }: Change): string {
  return `${type} ${from === null ? '' : `${from}>`}${path}${kind === 'dir' ? '/' : ''}`;
}

async function begin(
  t: TestContext,
  options: EngineOptions = {},
): Promise<{ engine: Engine; session: Channel; dir: string }> {
  const engine = await Engine.start(t, options);
  // In memory: tens of thousands of entries take a disk seconds.
  const base = mkdtempSync('/dev/shm/svc-watch-');
  t.after(() => rmSync(base, { recursive: true, force: true }));
  const dir = join(base, 'watched');
  mkdirSync(dir);
  return { engine, session: await engine.session(), dir };
}

async function failure(channel: Channel, path: string, recursive = false): Promise<Frame['payload']> {
  const frame = await channel.call('svc.watch.start', { path, recursive });
  assert.equal(frame.type, 'svc.watch.failed');
  return frame.payload;
}

test('a watch reports entries that are created, changed, renamed and removed in a folder, and not below it', async (t) => {
  const { session, dir } = await begin(t);
  mkdirSync(join(dir, 'sub'));
  const watch = await Watch.start(session, dir);
  writeFileSync(join(dir, 'a'), '');
  appendFileSync(join(dir, 'a'), 'text');
  chmodSync(join(dir, 'a'), 0o600);
  renameSync(join(dir, 'a'), join(dir, 'b'));
  writeFileSync(join(dir, 'sub/unseen'), '');
  renameSync(join(dir, 'b'), join(dir, 'sub/b'));
  renameSync(join(dir, 'sub/b'), join(dir, 'c'));
  unlinkSync(join(dir, 'c'));
  mkdirSync(join(dir, 'end'));
  assert.deepEqual(await watch.until('created end/'), [
    'created a',
    'modified a',
    'attributes a',
    'renamed a>b',
    'removed b',
    'created c',
    'removed c',
    'created end/',
  ]);
});

test('a recursive watch follows folders that come, move and go, and no link', async (t) => {
  const { session, dir } = await begin(t);
  mkdirSync(join(dir, 'old/deep'), { recursive: true });
  mkdirSync(join(dir, '../outside'));
  symlinkSync(join(dir, '../outside'), join(dir, 'link'));
  const watch = await Watch.start(session, dir, true);
  writeFileSync(join(dir, 'old/deep/f'), '');
  renameSync(join(dir, 'old'), join(dir, 'new'));
  writeFileSync(join(dir, 'new/deep/g'), '');
  mkdirSync(join(dir, 'made'));
  // After the first event in a folder the folder is watched: later changes have events of their own.
  writeFileSync(join(dir, 'made/first'), '');
  await watch.until('created made/first');
  renameSync(join(dir, 'new/deep'), join(dir, 'made/deep'));
  writeFileSync(join(dir, 'made/deep/h'), '');
  symlinkSync('../../outside', join(dir, 'made/link'));
  writeFileSync(join(dir, '../outside/unseen'), '');
  renameSync(join(dir, 'made/deep'), join(dir, '../outside/deep'));
  writeFileSync(join(dir, '../outside/deep/unseen'), '');
  renameSync(join(dir, '../outside/deep'), join(dir, 'back'));
  rmSync(join(dir, 'made'), { recursive: true });
  const changes = await watch.until('removed made/');
  assert.deepEqual(changes.slice(0, 10), [
    'created old/deep/f',
    'renamed old>new/',
    'created new/deep/g',
    'created made/',
    'created made/first',
    'renamed new/deep>made/deep/',
    'created made/deep/h',
    'created made/link',
    'removed made/deep/',
    'created back/',
  ]);
  // In the order of the folder, which is no order.
  const listed = ['f', 'g', 'h', 'unseen'].map((name) => `created back/${name}`);
  assert.deepEqual(changes.slice(10, 14).toSorted(), listed);
  assert.deepEqual(changes.slice(14, 16).toSorted(), ['removed made/first', 'removed made/link']);
  assert.deepEqual(changes.slice(16), ['removed made/']);
  writeFileSync(join(dir, 'back/last'), '');
  await watch.until('created back/last');
});

test('files in new folders are reported once', async (t) => {
  const { session, dir } = await begin(t);
  const watch = await Watch.start(session, dir, true);
  const script = `cd ${dir}; for i in 1 2 3 4 5 6 7 8; do mkdir -p $i/a/b/c; for f in x y z; do : > $i/$f; : > $i/a/b/$f; : > $i/a/b/c/$f; done; done; : > end`;
  const done = shell(session, script);
  const changes = (await watch.until('created end')).filter((change) => change.startsWith('created '));
  await done;
  const expected = ['created end'];
  for (let i = 1; i <= 8; i++) {
    expected.push(...['', '/a', '/a/b', '/a/b/c'].map((path) => `created ${i}${path}/`));
    for (const folder of ['', '/a/b', '/a/b/c']) {
      expected.push(...['x', 'y', 'z'].map((name) => `created ${i}${folder}/${name}`));
    }
  }
  assert.deepEqual(changes.toSorted(), expected.toSorted());
});

test('a single file can be watched, and a link leads to what it names', async (t) => {
  const { session, dir } = await begin(t);
  const file = join(dir, 'file');
  writeFileSync(file, '');
  symlinkSync('file', join(dir, 'link'));
  const watch = await Watch.start(session, join(dir, 'link'), true);
  writeFileSync(join(dir, 'other'), '');
  appendFileSync(file, 'x');
  chmodSync(file, 0o600);
  unlinkSync(file);
  assert.deepEqual((await watch.end()).payload, { reason: 'removed' });
  assert.deepEqual(
    watch.changes.filter((change, index) => change !== watch.changes[index - 1]),
    ['modified ', 'attributes ', 'removed '],
  );
});

test('a watch ends when its root is removed or moved, and when the client says so', async (t) => {
  const { session, dir } = await begin(t);
  const paths = ['a', 'b', 'c'].map((name) => join(dir, name));
  for (const path of paths) mkdirSync(path);
  const [removed, moved, stopped] = await Promise.all(paths.map((path) => Watch.start(session, path, true)));
  rmdirSync(paths[0] as string);
  renameSync(paths[1] as string, join(dir, 'elsewhere'));
  assert.deepEqual((await removed?.end())?.payload, { reason: 'removed' });
  assert.deepEqual((await moved?.end())?.payload, { reason: 'moved' });
  assert.deepEqual([...(removed?.changes ?? []), ...(moved?.changes ?? [])], ['removed /', 'removed /']);
  // A folder above it was moved: that is seen when something new is to be watched.
  mkdirSync(join(dir, 'd/root'), { recursive: true });
  const stranded = await Watch.start(session, join(dir, 'd/root'), true);
  renameSync(join(dir, 'd'), join(dir, 'e'));
  mkdirSync(join(dir, 'e/root/new'));
  assert.deepEqual((await stranded.end()).payload, { reason: 'removed' });
  assert.deepEqual(stranded.changes, ['created new/', 'removed /']);
  session.send(stopped?.id ?? 0, 'svc.watch.stop');
  assert.deepEqual((await stopped?.end())?.payload, { reason: 'stopped' });
  session.send(stopped?.id ?? 0, 'svc.watch.stop');
  assert.equal((await session.call('core.ping')).type, 'core.pong');
});

test('clients that watch the same folder get the same changes, also after one has left', async (t) => {
  const { engine, session, dir } = await begin(t);
  const other = await engine.session();
  const first = await Watch.start(session, dir, true);
  const second = await Watch.start(other, dir);
  writeFileSync(join(dir, 'a'), '');
  await Promise.all([first.until('created a'), second.until('created a')]);
  other.socket.destroy();
  (await engine.control()).send(0, 'svc.drop', { connection: other.number });
  mkdirSync(join(dir, 'b'));
  await first.until('created b/');
  writeFileSync(join(dir, 'b/c'), '');
  await first.until('created b/c');
});

test('names that are no UTF-8 come as in a listing', async (t) => {
  const { session, dir } = await begin(t);
  const watch = await Watch.start(session, dir);
  writeFileSync(Buffer.concat([Buffer.from(`${dir}/x`), Buffer.from([0xff]), Buffer.from('y')]), '');
  await watch.until('created x\u{fffd}y');
});

test('an impossible watch is refused with its reason', async (t) => {
  const { session, dir } = await begin(t);
  const missing = await failure(session, join(dir, 'nothing'));
  assert.deepEqual(missing, { message: 'watch: No such file or directory', errno_name: 'ENOENT' });
  const id = session.newId();
  session.send(id, 'svc.watch.start', { recursive: true });
  assert.equal((await session.takeType('core.error', id)).payload['kind'], 'invalid_payload');
  const watch = await Watch.start(session, dir);
  session.send(watch.id, 'svc.watch.start', { path: dir });
  assert.equal((await watch.end()).payload['kind'], 'invalid_session');
});

test('limits have names: watches of a sandbox, folders of a watch', async (t) => {
  const { session, dir } = await begin(t, { binary: releaseBinary });
  const watches = await Promise.all(Array.from({ length: 128 }, () => Watch.start(session, dir)));
  assert.match((await failure(session, dir))['message'] as string, /128 watches/);
  for (const watch of watches) session.send(watch.id, 'svc.watch.stop');
  await Promise.all(watches.map((watch) => watch.end()));
  const watch = await Watch.start(session, dir, true);
  for (let i = 0; i < 164; i++) {
    mkdirSync(join(dir, `${i}`));
    for (let j = 0; j < 100; j++) mkdirSync(join(dir, `${i}/${j}`));
  }
  const end = await watch.end();
  assert.equal(end.type, 'svc.watch.failed');
  assert.match(end.payload['message'] as string, /more than 16384 folders, the most that one watch covers/);
  assert.match((await failure(session, dir, true))['message'] as string, /more than 16384 folders/);
  assert.equal((await session.call('core.ping')).type, 'core.pong');
});

/** What a client knows that applies each change to what it knew; nothing any more after an overflow. */
class Mirror {
  readonly #paths = new Set<string>();
  isExact = true;

  apply({ type, path, from }: Change): void {
    if (type === 'overflow') this.isExact = false;
    if (type === 'created' || type === 'renamed') this.#paths.add(path);
    if (type === 'removed') this.#move(path, undefined);
    if (type === 'renamed') this.#move(from as string, path);
  }

  get paths(): string[] {
    return [...this.#paths].toSorted();
  }

  #move(from: string, to: string | undefined): void {
    for (const path of [...this.#paths].filter((known) => known === from || known.startsWith(`${from}/`))) {
      this.#paths.delete(path);
      if (to !== undefined) this.#paths.add(to + path.slice(from.length));
    }
  }
}

/** Makes, moves and removes files and folders at random; everything that does not work out is left. */
const CHURN = `
  const { mkdirSync, renameSync, rmSync, writeFileSync } = require('node:fs');
  let state = Number(process.argv[2]);
  const random = (below) => (state = (state * 48271) % 2147483647) % below;
  const pick = () => Array.from({ length: 1 + random(4) }, () => 'abc'[random(3)] + random(2)).join('/');
  const steps = [mkdirSync, mkdirSync, mkdirSync, (path) => writeFileSync(path, 'x'), (path) => writeFileSync(path, 'x'),
    (path) => renameSync(path, pick()), (path) => renameSync(path, pick()), (path) => rmSync(path, { recursive: true })];
  process.chdir(process.argv[1]);
  for (let step = 0; step < 3000; step++) try { steps[random(steps.length)](pick()); } catch {}
`;

for (const writers of [1, 3]) {
  test(`a copy that follows the changes of ${writers} wild writers is right, and every folder is still watched`, async (t) => {
    const { session, dir } = await begin(t);
    const watch = await Watch.start(session, dir, true);
    const mirror = new Mirror();
    watch.onChange = (change) => mirror.apply(change);
    const seeds = Array.from({ length: writers }, () => randomInt(1, 2 ** 31 - 1));
    const churning = seeds.map((seed) =>
      promisify(execFile)(process.execPath, ['-e', CHURN, dir, String(seed)]),
    );
    const done = Promise.all(churning).then(() => writeFileSync(join(dir, 'end'), ''));
    await watch.until('created end');
    await done;
    const tree = readdirSync(dir, { recursive: true, withFileTypes: true });
    const path = ({ parentPath, name }: Dirent): string => join(parentPath, name).slice(dir.length + 1);
    t.diagnostic(`seeds ${seeds.join(' ')}, ${watch.changes.length} changes, exact: ${mirror.isExact}`);
    if (mirror.isExact) assert.deepEqual(mirror.paths, tree.map(path).toSorted());
    for (const entry of tree.filter((one) => one.isDirectory())) {
      writeFileSync(join(dir, path(entry), 'probe'), '');
      await watch.until(`created ${path(entry)}/probe`);
    }
  });
}

test('a client that does not read gets an overflow instead of filling memory, and other clients do not wait', async (t) => {
  const { engine, session, dir } = await begin(t, { binary: releaseBinary });
  const slow = await engine.session();
  const watch = await Watch.start(slow, dir, true);
  slow.socket.pause();
  const before = engine.residentKib;
  for (let i = 0; i < 40_000; i++) writeFileSync(join(dir, `a-file-with-a-name-${i}`), '');
  assert.equal((await shell(session, `ls ${dir} | wc -l`)).stdout.trim(), '40000');
  assert.ok(engine.residentKib - before < 4096, `grew by ${engine.residentKib - before} KiB`);
  slow.socket.resume();
  await watch.until('overflow ');
  // The watch continues after the mark; a folder that was made meanwhile is watched.
  mkdirSync(join(dir, 'fresh'));
  await watch.until('created fresh/');
  writeFileSync(join(dir, 'fresh/file'), '');
  await watch.until('created fresh/file');
});

test('after an overflow of the kernel queue all folders are listed again, then the client is notified', async (t) => {
  const { engine, session, dir } = await begin(t);
  const watch = await Watch.start(session, dir, true);
  process.kill(engine.pid, 'SIGSTOP');
  for (let i = 0; i < KERNEL_QUEUE / 2 + 500; i++) {
    mkdirSync(join(dir, 'gone'));
    rmdirSync(join(dir, 'gone'));
  }
  mkdirSync(join(dir, 'unseen/deep'), { recursive: true });
  process.kill(engine.pid, 'SIGCONT');
  const changes = await watch.until('overflow ');
  assert.ok(!changes.includes('created unseen/'));
  writeFileSync(join(dir, 'unseen/deep/file'), '');
  await watch.until('created unseen/deep/file');
});

test('the greeting announces watches', async (t) => {
  const engine = await Engine.start(t);
  const control = await engine.control();
  control.send(0, 'svc.dial', { count: 1 });
  await waitUntil(() => engine.sessions.length > 0, 'a session');
  const ready = await engine.sessions[0]?.takeType('core.ready');
  assert.deepEqual(ready?.payload['features'], ['svc.detached', 'svc.repeat', 'svc.udp', 'svc.watch']);
});
