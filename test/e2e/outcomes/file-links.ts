import assert from 'node:assert/strict';
import { fillDisk } from './files.ts';
import { Outcomes } from './outcomes.ts';
import { UNKNOWN_ID, type Call, type Parts, type Reply } from './world.ts';

type Body = Reply['body'];

/** By the method of the link. */
const FOLLOWS = { GET: 'files.readByLink', PUT: 'files.writeByLink' } as const;
const METHODS = ['GET', 'PUT'] as const;
type Method = (typeof METHODS)[number];

let box: Body;
let idle: Body;
let key: Call;

export const fileLinks = new Outcomes();

fileLinks.phase('links to files', {
  enter: async (world) => {
    box = await world.running();
    idle = await world.created();
    key = world.caller('key');
  },
});
fileLinks.add('files.createLink', 'ok', async (call) => {
  const body = { path: '/etc/hosts', method: 'GET' };
  const reply = await call('files.createLink', { params: { sandbox_id: box.id }, body });
  const read = await key('files.readByLink', partsOf(reply.body.address));
  assert.match(String(read.body), /localhost/);
  return reply;
});
fileLinks.add('files.createLink', 'sandbox_not_found', async (call) => {
  const body = { path: '/etc/hosts', method: 'GET' };
  return await call('files.createLink', { params: { sandbox_id: UNKNOWN_ID }, body });
});
fileLinks.add('files.readByLink', 'ok', async (call) => {
  const reply = await follow(call, box, 'GET', '/etc/hosts');
  assert.match(reply.headers.get('content-disposition') ?? '', /^attachment; filename\*=UTF-8''hosts$/);
  return reply;
});
fileLinks.add('files.writeByLink', 'ok', async (call) => {
  const reply = await follow(call, box, 'PUT', '/made/by/link', { parents: true, mode: '0600' });
  assert.partialDeepStrictEqual(reply.body, { path: '/made/by/link', mode: '0600', size: 7 });
  return reply;
});
fileLinks.add('files.readByLink', 'range_not_satisfiable', async (call) => {
  const parts = partsOf(await link(box, 'GET', '/etc/hosts'));
  return await call('files.readByLink', { ...parts, headers: { range: 'bytes=99999-' } });
});
for (const method of METHODS) {
  fileLinks.add(FOLLOWS[method], 'not_found', (call) => follow(call, box, method, '/no/such/file'));
  fileLinks.add(FOLLOWS[method], 'sandbox_not_running', (call) => follow(call, idle, method, '/a'));
  fileLinks.add(FOLLOWS[method], 'sandbox_not_found', async (call, world) => {
    const removed = await world.created();
    const address = await link(removed, method, '/a');
    await key('sandboxes.remove', { params: { sandbox_id: removed.id } });
    const isGone = async () => (await key('sandboxes.get', { params: { sandbox_id: removed.id } })).status;
    assert.equal(await isGone(), 404);
    return await call(FOLLOWS[method], withBody(method, partsOf(address)));
  });
  fileLinks.add(FOLLOWS[method], 'forbidden', async (call) => {
    const parts = partsOf(await link(box, method, '/etc/hosts'));
    const query = { ...parts.query, path: '/etc/passwd' };
    const reply = await call(FOLLOWS[method], withBody(method, { ...parts, query }));
    assert.equal(reply.body.error.details.field, 'signature');
    return reply;
  });
}

let full: Body;
fileLinks.phase('links to files of a sandbox whose disk is full', {
  enter: async (world) => {
    full = await world.running();
    await fillDisk(key, full);
  },
});
fileLinks.add('files.writeByLink', 'disk_full', (call) =>
  follow(call, full, 'PUT', '/x/y', { parents: true }),
);

const addresses = new Map<Method, string>();
fileLinks.outage('links to files', {
  prepare: async () => {
    for (const method of METHODS) addresses.set(method, await link(box, method, '/etc/hostname'));
  },
});
for (const method of METHODS) {
  fileLinks.add(FOLLOWS[method], 'orchestrator_unreachable', async (call) => {
    return await call(FOLLOWS[method], withBody(method, partsOf(addresses.get(method) ?? '')));
  });
}

async function follow(
  call: Call,
  { id }: Body,
  method: Method,
  path: string,
  more: object = {},
): Promise<Reply> {
  const parts = partsOf(await link({ id }, method, path, more));
  // A link is good without a credential.
  return await call(FOLLOWS[method], { ...withBody(method, parts), as: null });
}

async function link({ id }: Body, method: Method, path: string, more: object = {}): Promise<string> {
  const reply = await key('files.createLink', {
    params: { sandbox_id: id },
    body: { path, method, ...more },
  });
  assert.equal(reply.status, 200, JSON.stringify(reply.body));
  return reply.body.address;
}

function partsOf(address: string): Parts {
  return { query: Object.fromEntries(new URL(address, 'http://x').searchParams), params: {} };
}

function withBody(method: Method, parts: Parts): Parts {
  return method === 'PUT' ? { ...parts, body: 'content' } : parts;
}
