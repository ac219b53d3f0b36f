import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { request } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { BUSYBOX } from '../engine/start-engine.ts';
import { TestServer } from './start-server.ts';

const MIB = 1024 * 1024;
const BIG_MIB = 96;

let server: TestServer;
let files: string;
let box: string;

before(async () => {
  server = await TestServer.start({ engineArgs: ['--isolation', 'container'] });
  const body = {
    name: 'box',
    image: { type: 'oci', reference: BUSYBOX },
    resources: { vcpus: 1, memory_mib: 64, disk_size_mib: 512 },
    runtime: { workdir: '/desk' },
  };
  const made = await send('POST', `${server.url}/v1/sandboxes?start=true&wait_for=running`, {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  assert.equal(made.status, 200, await made.clone().text());
  box = ((await made.json()) as { readonly id: string }).id;
  files = `${server.url}/v1/sandboxes/${box}/files`;
  await sh('adduser -D worker 2>/dev/null || echo "worker:x:1234:1234::/home/worker:/bin/sh" >> /etc/passwd');
  await sh('grep -q ^worker: /etc/group || echo "worker:x:1234:" >> /etc/group');
});
after(() => server.destroy());

const send = (method: string, url: string, init: RequestInit = {}) => fetch(url, { method, ...init });
const at = (path: string, more = '') => `?path=${encodeURIComponent(path)}${more}`;
const put = (path: string, body: NonNullable<RequestInit['body']>, more = '') =>
  send('PUT', `${files}/content${at(path, more)}`, { body, duplex: 'half' });
const get = (path: string, headers: Record<string, string> = {}) =>
  send('GET', `${files}/content${at(path)}`, { headers });
const post = (verb: string, body: object) =>
  send('POST', `${files}/${verb}`, {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
const json = async (response: Response) =>
  (await response.json()) as Record<string, never> & {
    readonly data: readonly Record<string, unknown>[];
    readonly next_cursor: string;
  };

/** Runs a line of shell in the sandbox and returns its output. */
async function sh(line: string): Promise<string> {
  const process = await json(
    await send('POST', `${server.url}/v1/sandboxes/${box}/processes`, {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ cmd: 'sh', args: ['-c', line] }),
    }),
  );
  const path = `/v1/sandboxes/${box}/processes/${String(process['id'])}/output?follow=true&stream=stdout`;
  const output = await (await send('GET', `${server.url}${path}`)).text();
  const pieces = [...output.matchAll(/"data":"([^"]*)"/g)].map(([, data = '']) => data);
  return pieces.map((data) => Buffer.from(data, 'base64').toString()).join('');
}

test('a file of 96 MiB goes in and out as a stream, and no byte is lost', async () => {
  const piece = randomBytes(MIB);
  const hash = createHash('sha256');
  async function* content() {
    for (let i = 0; i < BIG_MIB; i++) {
      piece.writeUInt32LE(i);
      hash.update(piece);
      yield Buffer.from(piece);
      await Promise.resolve();
    }
  }
  const written = await put('big', ReadableStream.from(content()));
  assert.equal(written.status, 200);
  assert.partialDeepStrictEqual(await written.json(), {
    path: '/desk/big',
    size: BIG_MIB * MIB,
    mode: '0644',
  });
  const expected = hash.digest('hex');
  assert.match(await sh('sha256sum /desk/big'), new RegExp(`^${expected} `));
  const read = await get('/desk/big');
  assert.equal(read.headers.get('content-length'), String(BIG_MIB * MIB));
  const back = createHash('sha256');
  for await (const chunk of read.body ?? []) back.update(chunk);
  assert.equal(back.digest('hex'), expected);
});

test('a range is answered with 206 and its place in the file', async () => {
  await put('/tmp/digits', '0123456789');
  const ranges: [string, number, string, string | null][] = [
    ['bytes=2-4', 206, '234', 'bytes 2-4/10'],
    ['bytes=7-', 206, '789', 'bytes 7-9/10'],
    ['bytes=-3', 206, '789', 'bytes 7-9/10'],
    ['bytes=-99', 206, '0123456789', 'bytes 0-9/10'],
    ['bytes=5-99', 206, '56789', 'bytes 5-9/10'],
    ['bytes=0-1,4-5', 200, '0123456789', null],
    ['bytes=4-2', 200, '0123456789', null],
    ['lines=1-2', 200, '0123456789', null],
  ];
  for (const [range, status, content, place] of ranges) {
    const response = await get('/tmp/digits', { range });
    const seen = [response.status, await response.text(), response.headers.get('content-range')];
    assert.deepEqual(seen, [status, content, place], range);
    assert.equal(response.headers.get('accept-ranges'), 'bytes');
  }
  const conditional = await get('/tmp/digits', { range: 'bytes=2-4', 'if-range': '"tag"' });
  assert.deepEqual([conditional.status, await conditional.text()], [200, '0123456789']);
});

test('a file of /proc, which says that it is empty, is read to its end', async () => {
  const version = await get('/proc/version', { range: 'bytes=0-3' });
  assert.equal(version.status, 200);
  assert.equal(await version.text(), await sh('cat /proc/version'));
});

test('an upload that breaks off leaves the old file and nothing beside it', async () => {
  await put('/tmp/kept/file', 'old', '&parents=true');
  const url = new URL(`${files}/content${at('/tmp/kept/file')}`);
  const upload = request(url, { method: 'PUT' });
  upload.on('error', () => undefined);
  const isBegun = async () => {
    upload.write(Buffer.alloc(MIB));
    return (await sh('ls -A /tmp/kept | wc -l')).trim() === '2';
  };
  await waitUntil(isBegun, { timeoutMs: 60_000, what: 'the upload has begun' });
  upload.destroy();
  const isGone = async () => (await sh('ls -A /tmp/kept')).trim() === 'file';
  await waitUntil(isGone, { timeoutMs: 60_000, what: 'the part that came is removed' });
  assert.equal(await (await get('/tmp/kept/file')).text(), 'old');
});

test('a reader that goes away leaves no open file', async () => {
  const usedMib = async () => Math.trunc(Number(await sh("df -k / | tail -n 1 | awk '{print $3}'")) / 1024);
  const response = await get('/desk/big');
  const reader = response.body?.getReader();
  await reader?.read();
  const before = await usedMib();
  await sh('rm /desk/big; sync');
  // The space of a removed file is free when it is not open any more.
  assert.ok((await usedMib()) > before - BIG_MIB / 2);
  await reader?.cancel();
  const isFree = async () => (await usedMib()) <= before - BIG_MIB / 2;
  await waitUntil(isFree, { timeoutMs: 60_000, what: 'the file is closed' });
});

test('owner and mode are set as asked, and stay when a file is replaced', async () => {
  const made = await json(await put('/srv/a/b/file', 'one', '&parents=true&owner=worker&mode=0640'));
  assert.partialDeepStrictEqual(made, { owner: 'worker', group: 'worker', mode: '0640' });
  assert.equal(await sh('stat -c "%U %a" /srv/a /srv/a/b'), 'worker 755\nworker 755\n');
  const again = await json(await put('/srv/a/b/file', 'two'));
  assert.partialDeepStrictEqual(again, { owner: 'worker', mode: '0640', size: 3 });
  const changed = await send('PATCH', files, {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ path: '/srv/a/b/file', owner: '7:root', mode: '4755' }),
  });
  assert.partialDeepStrictEqual(await json(changed), { uid: 7, gid: 0, group: 'root', mode: '4755' });
  const unknown = await put('/srv/x', '', '&owner=stranger');
  assert.equal(unknown.status, 400);
  assert.match(await unknown.text(), /does not have: stranger/);
});

test('a list walks depth first by name, page by page, and shows where links end', async () => {
  await sh(
    'mkdir -p /tree/b/inner /tree/a.d; cd /tree; touch a b/x b/inner/y c; ln -s b/x link; ln -s /no dead',
  );
  const list = async (more: string) => json(await send('GET', `${files}${at('/tree', more)}`));
  const all = await list('&depth=3');
  const paths = all.data.map(({ path }) => String(path).slice('/tree/'.length));
  assert.deepEqual(paths, ['a', 'a.d', 'b', 'b/inner', 'b/inner/y', 'b/x', 'c', 'dead', 'link']);
  const seen: unknown[] = [];
  for (let cursor = ''; ;) {
    const page = await list(`&depth=3&limit=2${cursor}`);
    seen.push(...page.data.map(({ path }) => path));
    if (page.next_cursor === null) break;
    cursor = `&cursor=${page.next_cursor}`;
  }
  assert.deepEqual(
    seen,
    all.data.map(({ path }) => path),
  );
  const [dead, link] = all.data.slice(-2);
  assert.partialDeepStrictEqual(link, { kind: 'symlink', target: '/tree/b/x' });
  assert.partialDeepStrictEqual(dead, { kind: 'symlink', target: null });
  assert.equal((await list('')).data.length, 6);
});

test('folders are made, moved and removed, and each change is an event', async () => {
  assert.equal((await post('mkdir', { path: '/d/e' })).status, 404);
  assert.equal((await post('mkdir', { path: '/d/e', parents: true })).status, 200);
  assert.equal((await post('move', { from: '/d/e', to: '/f/g', parents: true })).status, 200);
  assert.equal((await send('DELETE', `${files}${at('/f')}`)).status, 400);
  assert.equal((await send('DELETE', `${files}${at('/f', '&recursive=true')}`)).status, 200);
  assert.equal((await send('DELETE', `${files}${at('/', '&recursive=true')}`)).status, 400);
  const events = await json(await send('GET', `${server.url}/v1/events?limit=3`));
  assert.deepEqual(
    events.data.map(({ event_type: type }) => type),
    ['file_removed', 'file_moved', 'folder_created'],
  );
  assert.deepEqual(events.data[1]?.['payload'], { sandbox_id: box, from: '/d/e', to: '/f/g' });
});

test('metadata are extended attributes of the file, are replaced as a whole, and move with it', async () => {
  await put('/tmp/noted', 'x');
  const change = async (path: string, metadata: object) =>
    await json(
      await send('PATCH', files, {
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ path, metadata }),
      }),
    );
  assert.deepEqual((await change('/tmp/noted', { a: '1', 'b.c': 'größer' }))['metadata'], {
    a: '1',
    'b.c': 'größer',
  });
  assert.deepEqual((await change('/tmp/noted', { a: '2' }))['metadata'], { a: '2' });
  await post('move', { from: '/tmp/noted', to: '/tmp/moved' });
  const { data } = await json(await send('GET', `${files}${at('/tmp')}`));
  const listed = data.find(({ name }) => name === 'moved');
  assert.deepEqual(listed?.['metadata'], { a: '2' });
  assert.deepEqual((await json(await put('/tmp/moved', 'y')))['metadata'], {});
  const long = await change('/tmp/moved', { a: 'x'.repeat(4000), b: 'x'.repeat(4000) });
  assert.match(JSON.stringify(long['error']), /too long/);
});

test('a folder is no file, and a FIFO is not waited for', async () => {
  await sh('mkfifo /tmp/fifo');
  assert.equal((await get('/tmp')).status, 400);
  assert.equal((await put('/tmp', 'x')).status, 400);
  assert.equal((await get('/tmp/fifo')).status, 400);
  assert.equal((await send('GET', `${files}${at('/etc/hostname')}`)).status, 400);
});

describe('a link', () => {
  const link = async (body: object): Promise<string> =>
    `${server.url}${String((await json(await post('links', body)))['address'])}`;
  const PAGE = { origin: 'https://elsewhere.example', 'sec-fetch-site': 'cross-site' };

  test('reads its file from a page of any origin, as a download', async () => {
    await put('/tmp/é "x".txt', 'linked');
    const url = await link({ path: '/tmp/é "x".txt', method: 'GET' });
    const response = await send('GET', url, { headers: { ...PAGE, range: 'bytes=0-3' } });
    assert.deepEqual([response.status, await response.text()], [206, 'link']);
    assert.equal(response.headers.get('access-control-allow-origin'), '*');
    const disposition = response.headers.get('content-disposition');
    assert.equal(disposition, "attachment; filename*=UTF-8''%C3%A9%20%22x%22.txt");
    const preflight = await send('OPTIONS', url, {
      headers: { ...PAGE, 'access-control-request-method': 'PUT' },
    });
    assert.deepEqual(
      [preflight.status, preflight.headers.get('access-control-allow-methods')],
      [204, 'GET, PUT'],
    );
    // What is no link stays closed to them.
    const other = await send('GET', `${files}/content${at('/tmp/é "x".txt')}`, { headers: PAGE });
    assert.equal(other.status, 403);
  });

  test('writes its file with the owner and mode that it was made for, and is an event', async () => {
    const url = await link({ path: 'up/load', method: 'PUT', owner: 'worker', mode: '0600', parents: true });
    const written = await json(await send('PUT', url, { body: 'sent', headers: PAGE }));
    assert.partialDeepStrictEqual(written, { path: '/desk/up/load', owner: 'worker', mode: '0600', size: 4 });
    const [event] = (await json(await send('GET', `${server.url}/v1/events?limit=1`))).data;
    assert.partialDeepStrictEqual(event, { event_type: 'file_written' });
    assert.partialDeepStrictEqual(event?.['payload'], { path: '/desk/up/load', bytes: 4, by_link: true });
  });

  test('is refused for any other file, method, time, owner or sandbox', async () => {
    const url = new URL(await link({ path: '/etc/hosts', method: 'GET' }));
    const changes: [string, string][] = [
      ['path', '/etc/passwd'],
      ['expires', '99999999999'],
      ['by', 'user.x'],
      ['sandbox_id', '00000000-0000-4000-8000-000000000000'],
      ['signature', 'x'],
    ];
    for (const [field, value] of changes) {
      const changed = new URL(url);
      changed.searchParams.set(field, value);
      assert.equal((await send('GET', changed.href)).status, 403, field);
    }
    assert.equal((await send('PUT', url.href, { body: 'x' })).status, 403);
    const upload = new URL(await link({ path: '/tmp/up', method: 'PUT' }));
    upload.searchParams.set('mode', '4777');
    assert.equal((await send('PUT', upload.href, { body: 'x' })).status, 403);
    assert.equal((await post('links', { path: '/a', method: 'GET', mode: '0644' })).status, 400);
  });

  test('ends at its time', async () => {
    const url = await link({ path: '/etc/hosts', method: 'GET', expires_in_secs: 1 });
    let answer = await send('GET', url);
    const hasEnded = async () => (answer = await send('GET', url)).status === 403;
    await waitUntil(hasEnded, { timeoutMs: 60_000, what: 'the link has ended' });
    assert.match(await answer.text(), /The link ended at/);
  });
});
