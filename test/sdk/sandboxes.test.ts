import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { Client, Events, Organization, Sandbox, SvcError, Usage, Volume } from '@svc/sdk';
import { BUSYBOX } from '../engine/start-engine.ts';
import { useRealServer } from './real-server.ts';

const real = useRealServer();

test('a sandbox is made as the options say, found, listed by its labels, renamed and removed', async () => {
  const { client } = real;
  const options = { client, image: BUSYBOX, labels: { team: 'ml' }, env: { A: 'b' }, workdir: '/tmp' };
  const sandbox = await Sandbox.create({ ...options, name: 'made', memoryMib: 256 });
  assert.equal(sandbox.status, 'running');
  assert.equal((await sandbox.shell('echo $A $(pwd)')).text(), 'b /tmp\n');
  assert.equal((await Sandbox.connect('made', { client })).id, sandbox.id);
  assert.equal((await Sandbox.connect(sandbox.id, { client })).name, 'made');
  const named = await Array.fromAsync(Sandbox.list({ client, labels: { team: 'ml' } }));
  assert.deepEqual(
    named.map(({ name }) => name),
    ['made'],
  );
  await sandbox.rename({ name: 'renamed' });
  assert.equal(sandbox.name, 'renamed');
  await sandbox.restart();
  assert.equal((await sandbox.exec('true')).code, 0);
  await sandbox.remove();
  await assert.rejects(sandbox.refresh(), (error) => SvcError.is(error, 'sandbox_not_found'));
});

test('an ephemeral sandbox is gone after its block, a named one is stopped and can be had again', async () => {
  const { client } = real;
  let id = '';
  {
    await using sandbox = await Sandbox.create({ client, image: BUSYBOX });
    ({ id } = sandbox);
    assert.equal(sandbox.info.ephemeral, true);
    assert.equal((await sandbox.exec('true')).code, 0);
  }
  const isGone = () =>
    Sandbox.connect(id, { client }).then(
      () => false,
      (error) => SvcError.is(error, 'sandbox_not_found'),
    );
  await waitUntil(isGone, { what: 'the sandbox is gone' });
  {
    await using sandbox = await Sandbox.getOrCreate({ client, name: 'kept', image: BUSYBOX });
    await sandbox.files.write('/kept', 'here');
  }
  assert.equal((await Sandbox.connect('kept', { client })).status, 'stopped');
  const again = await Sandbox.getOrCreate({ client, name: 'kept', image: BUSYBOX });
  assert.equal(await again.files.readText('/kept'), 'here');
  await again.remove();
});

test('a sandbox with an unknown image fails its start with the reason', async () => {
  const { client } = real;
  const options = { client, name: 'imageless', image: 'svc/none', spec: { pull_policy: 'never' } } as const;
  const failure = await Sandbox.create(options).catch((error: unknown) => error);
  assert.ok(SvcError.is(failure, 'start_failed'), String(failure));
  const sandbox = await Sandbox.connect(String(failure.details?.['sandbox_id']), { client });
  assert.equal(sandbox.name, 'imageless');
  await sandbox.remove();
});

test('a taken name, a bad option and a bad key are distinguished', async () => {
  const { client, server } = real;
  const again = Sandbox.create({ client, name: 'shared', image: BUSYBOX });
  await assert.rejects(again, (error) => SvcError.is(error, 'name_already_exists') && error.status === 409);
  const tiny = Sandbox.create({ client, image: BUSYBOX, memoryMib: 1 });
  await assert.rejects(tiny, (error) => SvcError.is(error, 'invalid_request') && error.requestId !== null);
  const badClient = new Client({ apiUrl: server.url, apiKey: 'svc_nonsense' });
  const refused = Sandbox.connect('shared', { client: badClient });
  await assert.rejects(refused, (error) => SvcError.is(error, 'invalid_api_key'));
});

test('logs are read back and followed until the sandbox stops', async () => {
  const { client } = real;
  const script =
    'echo first; until [ -e /tmp/go ]; do sleep 0.05; done; echo second; echo loud >&2; exec sleep 1000';
  const spec = { runtime: { cmd: ['sh', '-c', script] } };
  const sandbox = await Sandbox.create({ client, name: 'talker', image: BUSYBOX, spec });
  const followed: string[] = [];
  const following = (async () => {
    for await (const { text } of sandbox.logs({ follow: true, sources: ['stdout'] })) followed.push(text);
  })();
  await sandbox.files.write('/tmp/go', '');
  await waitUntil(() => followed.join('').includes('second'), { what: 'the second line' });
  const isWhole = async () => (await Array.fromAsync(sandbox.logs())).length === 3;
  await waitUntil(isWhole, { what: 'the log is whole' });
  const past = await Array.fromAsync(sandbox.logs({ sources: ['stdout', 'stderr'] }));
  assert.deepEqual(past.map(({ source, text }) => `${source} ${text}`).toSorted(), [
    'stderr loud\n',
    'stdout first\n',
    'stdout second\n',
  ]);
  const [entry] = past;
  const after = await Array.fromAsync(sandbox.logs({ after: entry?.cursor ?? '' }));
  assert.equal(after.length, past.length - 1);
  assert.equal((await Array.fromAsync(sandbox.logs({ tail: 1 }))).length, 1);
  await sandbox.stop();
  await following;
  assert.equal(followed.join(''), 'first\nsecond\n');
  await sandbox.remove();
});

test('a running sandbox becomes a snapshot, a stopped one too, and the snapshot a sandbox', async () => {
  const { client } = real;
  const sandbox = await Sandbox.create({ client, name: 'original', image: BUSYBOX });
  await sandbox.files.write('/kept', 'by the snapshot');
  const snapshot = await sandbox.snapshot('first');
  await sandbox.stop();
  assert.equal((await sandbox.snapshot('second')).name, 'second');
  const { location } = snapshot;
  assert.equal(location.type, 'managed');
  const copy = await Sandbox.create({ client, name: 'copy', snapshotId: snapshot.id });
  assert.equal(await copy.files.readText('/kept'), 'by the snapshot');
  await copy.remove();
  await sandbox.remove();
});

test('metrics, usage, quotas, the organization and the audit log can be asked for', async () => {
  const { client, sandbox } = real;
  assert.equal((await sandbox.metrics({ rangeSeconds: 60, stepSeconds: 5 })).sandbox_id, sandbox.id);
  assert.ok((await Usage.summary({ client })).line_items.length > 0);
  assert.ok((await Usage.bySandbox({ client })).sandboxes.some(({ id }) => id === sandbox.id));
  assert.ok((await Usage.quotas({ client })).total_sandboxes >= 1);
  const organization = await Organization.me({ client });
  assert.equal(organization.slug, 'default');
  const created = await Array.fromAsync(Events.list({ client, type: 'sandbox_created' }));
  assert.ok(created.length >= 1);
  const [event] = created;
  assert.equal((await Events.get(event?.id ?? '', { client })).event_type, 'sandbox_created');
});

test('files of a volume are there in a sandbox that mounts it', async () => {
  const { client } = real;
  const volume = await Volume.create({ client, name: 'data', labels: { a: 'b' } });
  async function* pieces() {
    yield Buffer.from('by ');
    yield Buffer.from('streams');
  }
  await volume.files.mkdir('in/side');
  await volume.files.write('in/side/text', pieces());
  await volume.files.write('more', '\uFEFFa');
  assert.equal(await volume.files.readText('more'), '\uFEFFa');
  assert.equal(await volume.files.readText('in/side/text'), 'by streams');
  const mounts = [{ type: 'named', name: 'data', guest: '/data' }] as const;
  const sandbox = await Sandbox.create({ client, name: 'mounter', image: BUSYBOX, mounts: [...mounts] });
  assert.equal((await sandbox.shell('cat /data/in/side/text; echo back > /data/back')).text(), 'by streams');
  assert.equal(await volume.files.readText('back'), 'back\n');
  await assert.rejects(volume.remove(), (error) => SvcError.is(error, 'volume_in_use'));
  await sandbox.remove();
  await volume.files.copy('more', 'copied');
  await volume.files.rename('copied', 'moved');
  assert.equal(await volume.files.exists('copied'), false);
  assert.equal((await volume.files.stat('moved')).size, 4);
  await volume.files.remove('in', { recursive: true });
  assert.deepEqual((await volume.files.list()).map(({ path }) => path).toSorted(), ['back', 'more', 'moved']);
  await assert.rejects(volume.files.read('none'), (error) => SvcError.is(error, 'volume_file_not_found'));
  const found = await Volume.get('data', { client });
  assert.equal(found.id, volume.id);
  assert.equal((await Volume.getDefault({ client })).name, null);
  const remove = () =>
    volume.remove().then(
      () => true,
      (error) => !SvcError.is(error, 'volume_in_use'),
    );
  await waitUntil(remove, { what: 'the volume can be removed' });
});
