import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { request, type ClientRequest } from 'node:http';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import fc from 'fast-check';
import { type RestReply } from '../../testing/test-server.ts';
import { startWithVolume } from '../../testing/volume-files.ts';

/** However it ended. */
const closed = (outgoing: ClientRequest) => new Promise((resolve) => void outgoing.once('close', resolve));

const failure = ({ status, body }: RestReply) => [status, body.error.code];

test('a written file is read back, its folders are created, and the event is recorded', async (t) => {
  const { volume, put, get, list, events } = await startWithVolume(t);
  const content = Buffer.from([0, 1, 2, 255, 13, 10]);
  const written = await put('deep/in/päth/🙂', content);
  assert.deepEqual([written.status, written.body], [200, { ok: true }]);
  const read = await get('deep/in/päth/🙂');
  assert.equal(read.headers.get('content-type'), 'application/octet-stream');
  assert.deepEqual(read.body, content);
  assert.equal((await put('empty', '')).status, 200);
  assert.equal((await get('empty')).body.length, 0);
  assert.deepEqual(await list(''), ['deep', 'empty']);
  assert.deepEqual(await events(), [
    ['volume_file_written', { volume_id: volume.id, path: 'deep/in/päth/🙂', bytes: 6 }],
    ['volume_file_written', { volume_id: volume.id, path: 'empty', bytes: 0 }],
  ]);
});

test('a list has the immediate children with everything that clients need', async (t) => {
  const { server, files, at, put } = await startWithVolume(t);
  await put('a/b/c', 'x');
  await put('a/d', '12345');
  const { status, body } = await server.rest('GET', files, at('a'));
  assert.equal(status, 200);
  const [folder, file] = body.entries;
  assert.partialDeepStrictEqual(folder, { path: 'a/b', kind: 'directory', mode: 0o755 });
  const { accessed_at: accessed, modified_at: modified, ...rest } = file;
  assert.deepEqual(rest, {
    path: 'a/d',
    kind: 'file',
    size: 5,
    mode: 0o644,
    uid: 0,
    gid: 0,
    readonly: false,
    created_at: null,
  });
  assert.ok(Date.parse(accessed) > 0 && Date.parse(modified) > 0);
});

test('stat describes, and exists says whether there is something', async (t) => {
  const { server, files, at, put } = await startWithVolume(t);
  await put('file', 'x');
  const { body } = await server.rest('GET', `${files}/stat`, at('file'));
  assert.partialDeepStrictEqual(body.metadata, { path: 'file', kind: 'file', size: 1 });
  assert.equal((await server.rest('GET', `${files}/stat`, at(''))).body.metadata.kind, 'directory');
  const exists = async (path: string) => (await server.rest('GET', `${files}/exists`, at(path))).body.exists;
  assert.deepEqual(
    [await exists('file'), await exists('none'), await exists(''), await exists('file/below')],
    [true, false, true, false],
  );
});

test('members ask for many paths at once', async (t) => {
  const { server, files, put } = await startWithVolume(t);
  await put('a', 'x');
  await put('b/c', 'x');
  const ask = (paths: string[]) => server.rest('POST', `/orgs/default${files}/exists`, { body: { paths } });
  assert.deepEqual((await ask(['b/c', 'none', 'a', 'b'])).body, { existing_paths: ['b/c', 'a', 'b'] });
  assert.deepEqual((await ask([])).body, { existing_paths: [] });
  const { status, body } = await ask(['a', '../x']);
  assert.deepEqual(
    [status, body.error.code, body.error.details.field],
    [400, 'invalid_volume_path', 'paths[1]'],
  );
  assert.equal((await ask(Array.from({ length: 101 }, () => 'a'))).status, 400);
  const byKey = await server.rest('POST', `${files}/exists`, { body: { paths: [] } });
  assert.deepEqual(failure(byKey), [405, 'method_not_allowed']);
});

test('folders are made, files copied, renamed and removed, and each is noted', async (t) => {
  const { server, volume, files, at, put, get, list, events } = await startWithVolume(t);
  await put('a/file', 'x');
  const post = (verb: string, body: object) => server.rest('POST', `${files}/${verb}`, { body });
  assert.deepEqual((await post('mkdir', { path: 'new/folder' })).body, { ok: true });
  assert.deepEqual((await post('copy', { from: 'a', to: 'copy' })).body, { ok: true });
  assert.deepEqual((await post('rename', { from: 'copy/file', to: 'new/file' })).body, { ok: true });
  assert.equal((await get('new/file')).body.toString(), 'x');
  assert.deepEqual(failure(await server.rest('DELETE', files, at('a'))), [400, 'invalid_request']);
  const recursive = (value: string) => ({ ...at('a', { 'x-svc-file-recursive': value }) });
  assert.equal((await server.rest('DELETE', files, recursive('false'))).status, 400);
  const odd = await server.rest('DELETE', files, recursive('yes'));
  assert.deepEqual([odd.status, odd.body.error.details.field], [400, 'x-svc-file-recursive']);
  assert.deepEqual((await server.rest('DELETE', files, recursive('true'))).body, { ok: true });
  assert.deepEqual(await list(''), ['copy', 'new']);
  const id = { volume_id: volume.id };
  assert.deepEqual((await events()).slice(1), [
    ['volume_folder_created', { ...id, path: 'new/folder' }],
    ['volume_file_copied', { ...id, from: 'a', to: 'copy' }],
    ['volume_file_renamed', { ...id, from: 'copy/file', to: 'new/file' }],
    ['volume_file_removed', { ...id, path: 'a', recursive: true }],
  ]);
});

test('a missing file is 404, a folder is no file, and a missing volume is 404', async (t) => {
  const { server, files, at, put, get } = await startWithVolume(t);
  await put('folder/file', 'x');
  assert.deepEqual(failure(await get('none')), [404, 'volume_file_not_found']);
  assert.deepEqual(failure(await get('folder')), [400, 'invalid_volume_path']);
  assert.deepEqual(failure(await put('folder', 'x')), [400, 'invalid_volume_path']);
  assert.deepEqual(failure(await server.rest('GET', files, at('none'))), [404, 'volume_file_not_found']);
  assert.deepEqual(failure(await server.rest('GET', `${files}/stat`, at('none'))), [
    404,
    'volume_file_not_found',
  ]);
  assert.deepEqual(failure(await server.rest('DELETE', files, at('none'))), [404, 'volume_file_not_found']);
  const body = { from: 'none', to: 'x' };
  for (const verb of ['copy', 'rename']) {
    assert.deepEqual(failure(await server.rest('POST', `${files}/${verb}`, { body })), [
      404,
      'volume_file_not_found',
    ]);
  }
  const other = `/volumes/${randomUUID()}/files`;
  for (const [method, path] of [
    ['GET', ''],
    ['DELETE', ''],
    ['GET', '/content'],
    ['PUT', '/content'],
    ['GET', '/stat'],
    ['GET', '/exists'],
  ] as const) {
    const reply = await server.rest(method, other + path, {
      ...at('x'),
      ...(method === 'PUT' ? { body: 'x' } : {}),
    });
    assert.deepEqual(failure(reply), [404, 'volume_not_found'], `${method} ${path}`);
  }
});

test('while the engine is away every operation is 502', async (t) => {
  const { server, volumeStore, files, at, put, get, events } = await startWithVolume(t);
  volumeStore.goAway();
  assert.deepEqual(failure(await get('x')), [502, 'orchestrator_unreachable']);
  assert.deepEqual(failure(await put('x', 'x')), [502, 'orchestrator_unreachable']);
  assert.deepEqual(failure(await server.rest('GET', files, at(''))), [502, 'orchestrator_unreachable']);
  assert.deepEqual(failure(await server.rest('GET', `${files}/exists`, at('x'))), [
    502,
    'orchestrator_unreachable',
  ]);
  const [[, payload] = [], ...more] = await events();
  assert.partialDeepStrictEqual(payload, { path: 'x', outcome: 'unknown' });
  assert.deepEqual(more, []);
});

test('a volume that is full is 507 and keeps the old file', async (t) => {
  const { server, volumeStore, files, at, put, get } = await startWithVolume(t);
  await put('file', 'old');
  const [{ id } = { id: '' }] = await volumeStore.listVolumes();
  await volumeStore.resizeVolume(id, 1);
  const reply = await server.rest('PUT', `${files}/content`, { ...at('file'), body: Buffer.alloc(2 ** 20) });
  assert.deepEqual(failure(reply), [507, 'disk_full']);
  assert.equal((await get('file')).body.toString(), 'old');
});

test('the path is a header of either spelling; one that is missing is named', async (t) => {
  const { server, files, put } = await startWithVolume(t);
  await put('a', 'x');
  for (const method of ['GET', 'DELETE']) {
    const { status, body } = await server.rest(method, files);
    assert.deepEqual([status, body.error.details.field], [400, 'x-svc-file-path']);
  }
  const reference = await server.rest('GET', files, { headers: { 'x-msb-file-path': '' } });
  assert.equal(reference.body.entries.length, 1);
  const padded = Buffer.from('a').toString('base64');
  assert.match(padded, /==$/);
  const read = await server.rest('GET', `${files}/content`, { headers: { 'x-svc-file-path': padded } });
  assert.equal(read.body.toString(), 'x');
});

test('headers that are no base64 of UTF-8 text are 400', async (t) => {
  const { server, files } = await startWithVolume(t);
  const base64 = (...bytes: number[]) => Buffer.from(bytes).toString('base64url');
  for (const header of [
    'a',
    '*',
    'YQ=a',
    'YQ===',
    'a b',
    'YWFh+',
    base64(0xff),
    base64(0xc0, 0x80),
    base64(0xed, 0xa0, 0x80),
  ]) {
    const reply = await server.rest('GET', files, { headers: { 'x-svc-file-path': header } });
    assert.deepEqual(failure(reply), [400, 'invalid_volume_path'], header);
    assert.equal(reply.body.error.details.field, 'x-svc-file-path');
  }
});

test('no path leads out of the volume or does any harm, however it is written', async (t) => {
  const { server, files, at, put, list } = await startWithVolume(t);
  await put('kept', 'x');
  const part = fc.constantFrom(
    '..',
    '.',
    '',
    '/',
    'a',
    'kept',
    '\0',
    'x'.repeat(300),
    '..\\',
    '%2e%2e',
    '…',
    ' ',
  );
  const path = fc.array(part, { maxLength: 6 }).map((parts) => parts.join('/'));
  await fc.assert(
    fc.asyncProperty(fc.oneof(path, fc.string({ unit: 'binary', maxLength: 40 })), async (tried) => {
      const parts = tried.split('/');
      const isClean =
        tried === '' ||
        (!tried.includes('\0') &&
          parts.every((name) => !['', '.', '..'].includes(name) && Buffer.byteLength(name) < 256));
      const { status, body } = await server.rest('GET', `${files}/stat`, at(tried));
      if (!isClean) assert.deepEqual([status, body.error.code], [400, 'invalid_volume_path']);
      else
        assert.ok(
          status === 200 ||
            failure({ status, body } as RestReply).join() === '404,volume_file_not_found' ||
            status === 400,
        );
      const copied = await server.rest('POST', `${files}/copy`, { body: { from: tried, to: tried } });
      assert.ok(copied.status < 500, `${copied.status}`);
      if (!isClean) assert.equal((await put(tried, 'evil')).status, 400);
    }),
    { numRuns: 60 },
  );
  assert.deepEqual(await list(''), ['kept']);
});

test('a body without a type, of any type, in chunks and over the limit for JSON is taken as it is', async (t) => {
  const { server, files, at, get } = await startWithVolume(t, { maxBodyBytes: 1000 });
  const content = Buffer.alloc(300_000, 'z');
  const send = async (headers: Record<string, string>) => {
    const outgoing = request(`${server.url}/v1${files}/content`, {
      method: 'PUT',
      headers: { ...at('file').headers, ...headers },
      agent: false,
    });
    for (let start = 0; start < content.length; start += 50_000)
      outgoing.write(content.subarray(start, start + 50_000));
    outgoing.end();
    const [response] = (await once(outgoing, 'response')) as [{ statusCode?: number; resume(): void }];
    response.resume();
    return response.statusCode;
  };
  assert.equal(await send({}), 200);
  assert.deepEqual((await get('file')).body, content);
  for (const type of ['application/json', 'text/plain', 'multipart/form-data; boundary=x', 'nonsense']) {
    assert.equal(await send({ 'content-type': type }), 200, type);
  }
  assert.equal(await send({ 'content-length': String(content.length) }), 200);
  assert.equal(
    (await server.rest('POST', `${files}/mkdir`, { body: { path: 'x'.repeat(2000) } })).status,
    413,
  );
});

test('an upload that breaks off leaves the old file and no event', async (t) => {
  const { server, files, at, put, get, events, list } = await startWithVolume(t);
  await put('file', 'old');
  for (const headers of [{ 'content-length': '1000' }, { 'transfer-encoding': 'chunked' }]) {
    const outgoing = request(`${server.url}/v1${files}/content`, {
      method: 'PUT',
      headers: { ...at('file').headers, ...headers },
    });
    outgoing.on('error', () => undefined);
    outgoing.write('half of the new');
    await waitUntil(() => (outgoing.socket?.bytesWritten ?? 0) > 100);
    outgoing.destroy();
    await closed(outgoing);
  }
  assert.equal((await get('file')).body.toString(), 'old');
  assert.deepEqual(await list(''), ['file']);
  assert.equal((await events()).length, 1);
});

test('an upload may take long while it flows; one that stops is cut off, and so is slow JSON', async (t) => {
  const { server, files, at, get } = await startWithVolume(t, { requestTimeoutMs: 1000 });
  const open = (method: string, path: string) => {
    const outgoing = request(`${server.url}/v1${files}${path}`, {
      method,
      headers: { ...at('slow').headers, 'transfer-encoding': 'chunked' },
    });
    outgoing.on('error', () => undefined);
    return outgoing;
  };
  /** Its status; undefined when this machine stood still for so long that the upload did not flow. */
  const upload = async (): Promise<number | undefined> => {
    const slow = open('PUT', '/content');
    const answered = once(slow, 'response') as Promise<[{ statusCode?: number; resume(): void }]>;
    answered.catch(() => undefined);
    let longestPauseMs = 0;
    for (let count = 0; count < 6; count += 1) {
      const sentAt = performance.now();
      slow.write('x');
      await new Promise((resolve) => void setTimeout(resolve, 250));
      longestPauseMs = Math.max(longestPauseMs, performance.now() - sentAt);
    }
    if (longestPauseMs > 600) return void slow.destroy();
    slow.end();
    const [response] = await answered;
    response.resume();
    return response.statusCode;
  };
  let status: number | undefined;
  for (let attempt = 0; status === undefined && attempt < 20; attempt += 1) status = await upload();
  assert.equal(status, 200);
  assert.equal((await get('slow')).body.toString(), 'x'.repeat(6));
  for (const outgoing of [open('PUT', '/content'), open('POST', '/mkdir')]) {
    outgoing.write('{');
    outgoing.once('response', (refused) => {
      assert.equal(refused.statusCode, 408);
      refused.resume();
    });
    await closed(outgoing);
  }
  assert.equal((await get('slow')).body.toString(), 'x'.repeat(6));
});

test('of several writers of one file one wins whole, and each gets an answer', async (t) => {
  const { put, get } = await startWithVolume(t);
  const letters = ['a', 'b', 'c', 'd', 'e'];
  const replies = await Promise.all(letters.map((letter) => put('file', letter.repeat(200_000))));
  assert.ok(replies.every(({ status }) => status === 200));
  const content = (await get('file')).body.toString();
  assert.equal(content.length, 200_000);
  assert.equal(new Set(content).size, 1);
});

test('one idempotency key writes once, and with another content it is refused', async (t) => {
  const { server, files, at, get } = await startWithVolume(t);
  const put = (body: string) =>
    server.rest('PUT', `${files}/content`, { ...at('file', { 'idempotency-key': 'k' }), body });
  assert.equal((await put('one')).status, 200);
  const again = await put('one');
  assert.deepEqual([again.status, again.headers.get('idempotency-replayed')], [200, 'true']);
  assert.deepEqual(failure(await put('two')), [409, 'idempotency_conflict']);
  assert.equal((await get('file')).body.toString(), 'one');
});

test('the files of the host volume are there on first use', async (t) => {
  const { server, at } = await startWithVolume(t);
  const { body: host } = await server.rest('GET', '/volumes/default');
  const path = `/volumes/${host.id}/files/content`;
  assert.equal((await server.rest('PUT', path, { ...at('x'), body: 'y' })).status, 200);
  assert.equal((await server.rest('GET', `/orgs/default${path}`, at('x'))).body.toString(), 'y');
});
