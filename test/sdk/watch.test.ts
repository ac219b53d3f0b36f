import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Sandbox, SvcError, Volume, type FileChange, type FileWatch } from '@svc/sdk';
import { BUSYBOX } from '../engine/start-engine.ts';
import { useRealServer } from './real-server.ts';

const TIMEOUT_MS = 60_000;
const real = useRealServer();

const deadline = () => AbortSignal.timeout(TIMEOUT_MS);

function text(change: FileChange): string {
  if (change.type === 'overflow') return change.type;
  const from = change.type === 'renamed' ? `${change.from}>` : '';
  return `${change.type} ${from}${change.path}${change.kind === 'directory' ? '/' : ''}`;
}

/** Reads up to a change, which must come. What is written in pieces is modified once or more: left out. */
async function readUntil(watch: FileWatch, last: RegExp): Promise<string[]> {
  const changes: string[] = [];
  const timer = setTimeout(() => watch.close(), TIMEOUT_MS);
  for await (const change of watch) {
    if (change.type !== 'modified') changes.push(text(change));
    if (last.test(changes.at(-1) ?? '')) break;
  }
  clearTimeout(timer);
  assert.match(changes.at(-1) ?? '', last, changes.join(', '));
  return changes;
}

for (const isolation of ['container', 'gvisor'] as const) {
  describe(`watching files on ${isolation}`, { concurrency: false }, () => {
    let sandbox: Sandbox;
    before(async () => {
      const { client } = real;
      await Volume.create({ client, name: isolation });
      const mounts = [{ type: 'named' as const, name: isolation, guest: '/shared' }];
      sandbox = await Sandbox.create({ client, name: isolation, image: BUSYBOX, isolation, mounts });
    });
    after(() => sandbox?.close());

    test('changes of processes and of clients are reported, in folders that are there and in new ones', async () => {
      await sandbox.files.mkdir('/project/old');
      await using watch = await sandbox.files.watch('/project', { recursive: true });
      assert.equal(watch.path, '/project');
      await sandbox.shell('cd /project; : > f; chmod 600 f; mv f old/g; mkdir new');
      await sandbox.files.write('/project/new/h', 'x');
      await sandbox.shell('cd /project; rm new/h; rmdir new; mv old back');
      assert.deepEqual(await readUntil(watch, /back/), [
        'created f',
        'attributes f',
        'renamed f>old/g',
        'created new/',
        'created new/h',
        'removed new/h',
        'removed new/',
        'renamed old>back/',
      ]);
    });

    test('the whole file system can be watched, volumes included', async () => {
      await using watch = await sandbox.files.watch('/', { recursive: true });
      await sandbox.files.write('/etc/new-setting', 'x');
      await sandbox.files.write('/shared/new-file', 'x');
      const changes = await readUntil(watch, /created shared\/new-file/);
      assert.ok(changes.includes('created etc/new-setting'), changes.join(', '));
    });

    test('a single file can be watched, also one of the image', async () => {
      await using watch = await sandbox.files.watch('/etc/passwd', { signal: deadline() });
      await sandbox.shell('echo >> /etc/passwd');
      for await (const change of watch) {
        if (change.type !== 'modified') continue;
        assert.deepEqual(change, { type: 'modified', path: '', kind: 'file' });
        break;
      }
    });

    test('a watch ends with its path, and when its owner closes it', async () => {
      await sandbox.files.mkdir('/gone');
      const gone = await sandbox.files.watch('/gone', { signal: deadline() });
      await sandbox.files.remove('/gone');
      assert.deepEqual((await Array.fromAsync(gone)).map(text), ['removed /']);
      const controller = new AbortController();
      const aborted = await sandbox.files.watch('/tmp', { signal: controller.signal });
      const closed = await sandbox.files.watch('/tmp');
      const reading = [Array.fromAsync(aborted), Array.fromAsync(closed)];
      controller.abort();
      closed.close();
      const [first, second] = await Promise.allSettled(reading);
      assert.ok(first?.status === 'rejected' && SvcError.is(first.reason, 'aborted'), String(first?.status));
      assert.deepEqual(second, { status: 'fulfilled', value: [] });
      await assert.rejects(sandbox.files.watch('/nowhere'), (error) => SvcError.is(error, 'not_found'));
    });
  });
}

test('on containers, writes into a volume from outside are reported too', async () => {
  const { client } = real;
  const sandbox = await Sandbox.connect('container', { client });
  await using watch = await sandbox.files.watch('/shared');
  const volume = await Volume.get('container', { client });
  await volume.files.write('outside', 'x');
  // Files of volumes are written beside their place and then moved there.
  await readUntil(watch, /outside$/);
  sandbox.close();
});
