import assert from 'node:assert/strict';
import { ALL_FILE_OPERATIONS, FILE_REQUESTS, type FileOperation } from './file-requests.ts';
import { Outcomes } from './outcomes.ts';
import { UNKNOWN_ID, type Call, type Parts, type Reply } from './world.ts';

type Body = Reply['body'];

/** Root of the sandbox may not change what is mounted for reading. */
const READ_ONLY: Partial<Record<FileOperation, Parts>> = {
  'files.read': FILE_REQUESTS['files.read']('/proc/1/mem'),
  'files.write': FILE_REQUESTS['files.write']('/sys/new'),
  'files.makeFolder': FILE_REQUESTS['files.makeFolder']('/sys/new'),
  'files.move': FILE_REQUESTS['files.move']('/sys/kernel'),
  'files.remove': FILE_REQUESTS['files.remove']('/sys/kernel'),
  'files.change': FILE_REQUESTS['files.change']('/sys/kernel'),
};
/** They need room. */
const GROWING: Partial<Record<FileOperation, (name: string) => Parts>> = {
  'files.write': (name) => ({ query: { path: `/${name}` }, body: 'x'.repeat(64 * 1024) }),
  'files.makeFolder': (name) => ({ body: { path: `/${name}` } }),
  'files.move': (name) => ({ body: { from: '/etc/hostname', to: `/${name}/a`, parents: true } }),
};

let box: Body;
let idle: Body;
const of = ({ id }: Body, parts: Parts): Parts => ({ ...parts, params: { sandbox_id: id } });
const isOk = ({ status, body }: Reply) => assert.equal(status, 200, JSON.stringify(body));

export const files = new Outcomes();

files.phase('files of a sandbox', {
  enter: async (world) => {
    box = await world.running();
    idle = await world.created();
  },
});
files.add('files.write', 'ok', async (call) => {
  const metadata = { purpose: 'a test', 'e2b.by': 'x' };
  const more = { owner: '1000:1000', mode: '0640', metadata: JSON.stringify(metadata) };
  const query = { path: '/made/by/write', parents: true, ...more };
  const reply = await call('files.write', of(box, { query, body: 'content' }));
  const made = { size: 7, uid: 1000, gid: 1000, mode: '0640', kind: 'file', metadata };
  assert.partialDeepStrictEqual(reply.body, made);
  for (const wrong of ['no JSON', '[]', '{"a b":"c"}', '{"a":1}']) {
    const refused = await call('files.write', of(box, { query: { path: '/x', metadata: wrong }, body: '' }));
    assert.deepEqual([refused.status, refused.body.error.code], [400, 'invalid_request'], wrong);
    assert.match(refused.body.error.details.field, /^metadata/);
  }
  return reply;
});
files.add('files.read', 'ok', async (call) => {
  await write(call, '/read', 'content');
  const reply = await call('files.read', of(box, FILE_REQUESTS['files.read']('/read')));
  assert.deepEqual([reply.body, reply.headers.get('content-length')], ['content', '7']);
  return reply;
});
files.add('files.list', 'ok', async (call) => {
  isOk(await call('files.write', of(box, { query: { path: '/listed/a/b', parents: true }, body: '' })));
  const reply = await call('files.list', of(box, { query: { path: '/listed', depth: 2 } }));
  const paths = reply.body.data.map(({ path }: Body) => path);
  assert.deepEqual(paths, ['/listed/a', '/listed/a/b']);
  return reply;
});
files.add('files.stat', 'ok', async (call) => {
  const reply = await call('files.stat', of(box, FILE_REQUESTS['files.stat']('/etc')));
  assert.partialDeepStrictEqual(reply.body, { name: 'etc', kind: 'directory', owner: 'root' });
  return reply;
});
files.add('files.makeFolder', 'ok', async (call, world) => {
  const path = `/${world.fresh('folder')}`;
  const reply = await call('files.makeFolder', of(box, { body: { path, mode: '0700' } }));
  assert.partialDeepStrictEqual(reply.body, { path, mode: '0700', kind: 'directory' });
  return reply;
});
files.add('files.move', 'ok', async (call, world) => {
  const path = await write(call, `/${world.fresh('moved')}`);
  const reply = await call('files.move', of(box, FILE_REQUESTS['files.move'](path)));
  assert.equal(reply.body.path, `${path}-moved`);
  return reply;
});
files.add('files.remove', 'ok', async (call, world) => {
  const path = await write(call, `/${world.fresh('removed')}`);
  const reply = await call('files.remove', of(box, FILE_REQUESTS['files.remove'](path)));
  assert.equal((await call('files.stat', of(box, FILE_REQUESTS['files.stat'](path)))).status, 404);
  return reply;
});
files.add('files.change', 'ok', async (call, world) => {
  const path = await write(call, `/${world.fresh('changed')}`);
  const reply = await call('files.change', of(box, FILE_REQUESTS['files.change'](path)));
  assert.equal(reply.body.mode, '0600');
  return reply;
});

for (const operation of ALL_FILE_OPERATIONS) {
  const request = FILE_REQUESTS[operation];
  files.add(operation, 'sandbox_not_found', (call) => call(operation, of({ id: UNKNOWN_ID }, request('/a'))));
  files.add(operation, 'sandbox_not_running', (call) => call(operation, of(idle, request('/a'))));
  files.add(operation, 'not_found', async (call) => {
    const reply = await call(operation, of(box, request('/no/such/path')));
    assert.equal(reply.body.error.details.errno, 'ENOENT');
    return reply;
  });
}
for (const [operation, request] of Object.entries(READ_ONLY) as [FileOperation, Parts][]) {
  files.add(operation, 'forbidden', (call) => call(operation, of(box, request)));
}
files.add('files.list', 'invalid_cursor', (call) =>
  call('files.list', of(box, { query: { path: '/', cursor: 'none' } })),
);
files.add('files.read', 'range_not_satisfiable', async (call) => {
  const path = await write(call, '/short', 'content');
  const headers = { range: 'bytes=7-' };
  const reply = await call('files.read', of(box, { ...FILE_REQUESTS['files.read'](path), headers }));
  assert.equal(reply.headers.get('content-range'), 'bytes */7');
  return reply;
});
files.add('files.makeFolder', 'name_already_exists', (call) =>
  call('files.makeFolder', of(box, FILE_REQUESTS['files.makeFolder']('/etc'))),
);
files.add('files.move', 'name_already_exists', async (call) => {
  const [from, to] = [await write(call, '/first'), await write(call, '/second')];
  return await call('files.move', of(box, { body: { from, to } }));
});

let full: Body;
files.phase('files of a sandbox whose disk is full', {
  enter: async (world) => {
    full = await world.running();
    await fillDisk(world.caller('key'), full);
  },
});
for (const [operation, requestOf] of Object.entries(GROWING) as [FileOperation, (name: string) => Parts][]) {
  files.add(operation, 'disk_full', (call, world) => call(operation, of(full, requestOf(world.fresh('x')))));
}

files.outage('files');
for (const operation of ALL_FILE_OPERATIONS) {
  files.add(operation, 'orchestrator_unreachable', (call) =>
    call(operation, of(box, FILE_REQUESTS[operation]('/etc/hostname'))),
  );
}

async function write(call: Call, path: string, content = 'x'): Promise<string> {
  isOk(await call('files.write', of(box, { query: { path }, body: content })));
  return path;
}

/** Leaves no room for a file or a folder. */
export async function fillDisk(call: Call, { id }: Body): Promise<void> {
  const line = 'cat /dev/zero > /filler; cat /dev/zero > /more; while mkdir /d$((i+=1)); do :; done';
  const started = await call('processes.start', of({ id }, { body: { cmd: 'sh', args: ['-c', line] } }));
  const params = { sandbox_id: id, process_id: started.body.id };
  isOk(await call('processes.output', { params, query: { follow: true } }));
}
