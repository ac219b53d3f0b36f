import assert from 'node:assert/strict';
import { waitUntil } from '@svc/contract/testing';
import { askDeafSandbox } from './deaf-sandbox.ts';
import { Outcomes } from './outcomes.ts';
import { ABOUT_ONE, one, REQUESTS, startIn, TALKING } from './process-requests.ts';
import { UNKNOWN_ID, type Call, type Reply } from './world.ts';

type Body = Reply['body'];

const of = ({ id }: Body) => ({ params: { sandbox_id: id } });
const UNKNOWN = { id: UNKNOWN_ID };
/** As many as may follow the output of one sandbox. */
const MAX_READERS = 64;

let box: Body;

export const processes = new Outcomes();

processes.phase('processes', {
  enter: async (world) => {
    box = await world.running();
    await askDeafSandbox(world);
  },
});

processes.add('processes.start', 'ok', async (call, world) => {
  const body = { cmd: 'sh', args: ['-c', 'echo $WORD'], env: { WORD: 'said' }, name: world.fresh('talker') };
  const reply = await call('processes.start', { ...of(box), body });
  assert.deepEqual([reply.body.name, reply.body.status], [body.name, 'running']);
  const ended = await end(call, reply.body);
  assert.deepEqual([ended.exit.code, ended.stdout_bytes], [0, 5]);
  return reply;
});
processes.add('processes.start', 'sandbox_not_found', async (call) => {
  return await call('processes.start', { ...of(UNKNOWN), body: { cmd: 'true' } });
});
processes.add('processes.start', 'sandbox_not_running', async (call, world) => {
  return await call('processes.start', { ...of(await world.created()), body: { cmd: 'true' } });
});
processes.add('processes.start', 'name_already_exists', async (call) => {
  const { name } = await start(call);
  return await call('processes.start', { ...of(box), body: { cmd: 'true', name } });
});
processes.add('processes.start', 'exec_failed', async (call) => {
  const reply = await call('processes.start', { ...of(box), body: { cmd: '/no/such/program' } });
  assert.equal(reply.body.error.details.errno, 'ENOENT');
  return reply;
});
processes.add('processes.start', 'payload_too_large', async (call) => {
  const args = Array.from({ length: 64 }, () => 'x'.repeat(64 * 1024));
  return await call('processes.start', { ...of(box), body: { cmd: 'true', args } });
});
processes.add('processes.list', 'ok', async (call) => {
  const { id } = await start(call);
  const reply = await call('processes.list', { ...of(box), query: { status: 'running', limit: 100 } });
  assert.ok(reply.body.data.some((process: Body) => process.id === id));
  return reply;
});
processes.add('processes.list', 'invalid_cursor', async (call) => {
  return await call('processes.list', { ...of(box), query: { cursor: 'none' } });
});
processes.add('processes.list', 'sandbox_not_found', (call) => call('processes.list', of(UNKNOWN)));
processes.add('processes.get', 'ok', async (call) => {
  const { id, name } = await start(call);
  const reply = await call('processes.get', { params: { sandbox_id: box.id, process_id: name } });
  assert.equal(reply.body.id, id);
  return reply;
});
processes.add('processes.output', 'ok', async (call) => {
  const process = await start(call, 'echo here');
  await end(call, process);
  const reply = await call('processes.output', one(process));
  assert.match(reply.body, new RegExp(`"data":"${Buffer.from('here\n').toString('base64')}"`));
  assert.match(reply.body, /^event: end$/m);
  return reply;
});
processes.add('processes.signal', 'ok', async (call) => {
  const process = await start(call);
  const reply = await call('processes.signal', { ...one(process), body: { signal: 'SIGKILL' } });
  assert.equal((await end(call, process)).exit.signal, 'SIGKILL');
  return reply;
});
processes.add('processes.writeStdin', 'ok', async (call) => {
  const process = await start(call, 'read word; [ "$word" = input ]');
  const reply = await call('processes.writeStdin', { ...one(process), body: 'input\n' });
  assert.equal((await end(call, process)).exit.code, 0);
  return reply;
});
processes.add('processes.resize', 'ok', async (call) => {
  const process = await start(
    call,
    'trap "stty size; exit" WINCH; echo ready; while :; do sleep 0.05; done',
    {
      tty: true,
    },
  );
  const hasTrap = async () => (await call('processes.get', one(process))).body.stdout_bytes > 0;
  await waitUntil(hasTrap, { timeoutMs: 60_000, what: 'the process listens' });
  const reply = await call('processes.resize', { ...one(process), body: { rows: 33, cols: 99 } });
  await end(call, process);
  const { body } = await call('processes.output', one(process));
  const output = [...String(body).matchAll(/"data":"([^"]*)"/g)].map(([, data = '']) => data);
  const text = output.map((data) => Buffer.from(data, 'base64').toString()).join('');
  assert.match(text, /33 99/);
  return reply;
});
processes.add('processes.remove', 'ok', async (call) => {
  const process = await start(call);
  const reply = await call('processes.remove', one(process));
  assert.equal((await call('processes.get', one(process))).status, 404);
  return reply;
});

for (const operation of ABOUT_ONE) {
  processes.add(operation, 'sandbox_not_found', async (call) => {
    const params = { sandbox_id: UNKNOWN_ID, process_id: UNKNOWN_ID };
    return await call(operation, { ...REQUESTS[operation], params });
  });
  processes.add(operation, 'process_not_found', async (call) => {
    const params = { sandbox_id: box.id, process_id: UNKNOWN_ID };
    return await call(operation, { ...REQUESTS[operation], params });
  });
}
for (const operation of TALKING) {
  processes.add(operation, 'invalid_state_transition', async (call) => {
    const process = await start(call, 'true');
    await end(call, process);
    return await call(operation, { ...REQUESTS[operation], ...one(process) });
  });
}

const readers = new AbortController();
let followed: Body;
processes.phase('processes with as many readers as there may be', {
  enter: async (world) => {
    const call = world.caller('key');
    followed = await start(call);
    const { url } = world.server;
    const path = `/v1/sandboxes/${box.id}/processes/${followed.id}/output?follow=true`;
    const headers = { authorization: `Bearer ${world.acme.key}` };
    const open = () => fetch(`${url}${path}`, { headers, signal: readers.signal });
    await Promise.all(Array.from({ length: MAX_READERS }, open));
    const isFull = async () => (await call('processes.output', one(followed))).status === 429;
    await waitUntil(isFull, { timeoutMs: 60_000, what: 'all of them read' });
  },
  leave: async () => {
    readers.abort();
    await Promise.resolve();
  },
});
processes.add('processes.output', 'rate_limited', (call) => call('processes.output', one(followed)));

/** Talks, then ends. */
let logged: Body;
processes.phase('logs', {
  enter: async (world) => {
    const runtime = { cmd: ['sh', '-c', 'echo first; echo second >&2'] };
    const query = { start: true, wait_for: 'running', wait_timeout: 60 };
    const body = world.bodyOf(world.fresh('box'), { runtime });
    logged = (await world.caller('key')('sandboxes.create', { query, body })).body;
    await world.until(logged.id, 'stopped');
  },
});
processes.add('logs.list', 'ok', async (call) => {
  const reply = await call('logs.list', of(logged));
  const texts = reply.body.data.map(({ source, text }: Body) => `${source}: ${text}`);
  assert.deepEqual(texts.toSorted(), ['stderr: second\n', 'stdout: first\n']);
  return reply;
});
processes.add('logs.follow', 'ok', async (call) => {
  const reply = await call('logs.follow', of(logged));
  assert.match(reply.body, /"text":"first\\n"/);
  assert.match(reply.body, /^event: end$/m);
  return reply;
});
processes.add('logs.list', 'invalid_cursor', (call) =>
  call('logs.list', { ...of(logged), query: { cursor: 'none' } }),
);
processes.add('logs.follow', 'invalid_cursor', async (call) => {
  return await call('logs.follow', { ...of(logged), headers: { 'last-event-id': 'none' } });
});
for (const operation of ['logs.list', 'logs.follow'] as const) {
  processes.add(operation, 'sandbox_not_found', (call) => call(operation, of(UNKNOWN)));
}

let waiting: Body;
processes.outage('processes and logs', {
  prepare: async (world) => {
    waiting = await start(world.caller('key'));
  },
});
for (const operation of ['processes.remove', ...TALKING] as const) {
  processes.add(operation, 'orchestrator_unreachable', async (call) => {
    return await call(operation, { ...REQUESTS[operation], ...one(waiting) });
  });
}
processes.add('processes.start', 'orchestrator_unreachable', async (call) => {
  return await call('processes.start', { ...of(box), body: { cmd: 'true' } });
});
for (const operation of ['logs.list', 'logs.follow'] as const) {
  processes.add(operation, 'orchestrator_unreachable', (call) => call(operation, of(logged)));
}

const start = (call: Call, script?: string, more?: object) => startIn(box, call, script, more);

async function end(call: Call, process: Body): Promise<Body> {
  let seen = process;
  const hasEnded = async () => {
    seen = (await call('processes.get', one(process))).body;
    return seen.status === 'exited';
  };
  await waitUntil(hasEnded, { timeoutMs: 60_000, what: 'the process has ended' });
  return seen;
}
