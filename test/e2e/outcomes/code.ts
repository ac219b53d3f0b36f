import assert from 'node:assert/strict';
import { waitUntil } from '@svc/contract/testing';
import { ERROR_STATUS, type ErrorCode } from '@svc/contract';
import { importPython } from '../../engine/interpreter-images.ts';
import { Outcomes } from './outcomes.ts';
import { UNKNOWN_ID, type Call, type Parts, type Reply } from './world.ts';

type Body = Reply['body'];

const PYTHON = { image: { type: 'oci', reference: 'python' } };
const MAX_CONTEXTS = 16;
const of = ({ id }: Body) => ({ params: { sandbox_id: id } });
const UNKNOWN = { id: UNKNOWN_ID };

/** What is asked of a context. */
const REQUESTS = {
  'contexts.get': {},
  'contexts.interrupt': {},
  'contexts.restart': {},
  'contexts.remove': {},
  'code.run': { body: { code: '1' } },
  'code.stream': { body: { code: '1' } },
} as const;
/** The keys of the record. */
const ABOUT_ONE = Object.keys(REQUESTS) as (keyof typeof REQUESTS)[];
const RUNS = ['code.run', 'code.stream'] as const;
/** They need the sandbox. */
const CODE_REQUESTS: Readonly<Record<(typeof RUNS)[number] | 'contexts.create', Parts>> = {
  'code.run': { body: { code: '1', language: 'python' } },
  'code.stream': { body: { code: '1', language: 'python' } },
  'contexts.create': { body: { language: 'python' } },
};
/** The keys of the record. */
const BEGINNING = Object.keys(CODE_REQUESTS) as (keyof typeof CODE_REQUESTS)[];

let box: Body;
/** A context of a run that is over, of a sandbox that runs again. */
let restarted: Body;
let lost: Body;

export const code = new Outcomes();

code.phase('code and its contexts', {
  enter: async (world) => {
    await importPython(world.server.engine);
    [box, restarted] = await Promise.all([world.running(PYTHON), world.running(PYTHON)]);
    const call = world.caller('key');
    lost = await createIn(restarted, call);
    await call('sandboxes.stop', of(restarted));
    await world.until(restarted.id, 'stopped');
    await call('sandboxes.start', of(restarted));
    await world.until(restarted.id, 'running');
  },
});

for (const operation of RUNS) {
  code.add(operation, 'ok', async (call) => {
    const { id: context } = await createIn(box, call);
    await call('code.run', { ...of(box), body: { code: 'kept = 41', context } });
    const reply = await call(operation, { ...of(box), body: { code: 'print(kept + 1)', context } });
    if (operation === 'code.run') assert.equal(reply.body.stdout, '42\n');
    else assert.match(reply.body, /^event: stdout\ndata: {"text":"42\\n"}$/m);
    await call('contexts.remove', one(box, context));
    return reply;
  });
  code.add(operation, 'exec_failed', async (call) => {
    return streamed(await call(operation, { ...of(box), body: { code: '1', language: 'javascript' } }));
  });
}
code.add('contexts.create', 'ok', async (call, world) => {
  const name = world.fresh('context');
  const reply = await call('contexts.create', {
    ...of(box),
    body: { language: 'python', name, cwd: '/usr' },
  });
  const { name: made, cwd, status } = reply.body;
  assert.deepEqual([made, cwd, status], [name, '/usr', 'idle']);
  await call('contexts.remove', one(box, name));
  return reply;
});
code.add('contexts.create', 'exec_failed', async (call) => {
  return await call('contexts.create', { ...of(box), body: { language: 'javascript' } });
});
code.add('contexts.create', 'name_already_exists', async (call, world) => {
  const name = world.fresh('context');
  await createIn(box, call, name);
  const reply = await call('contexts.create', { ...of(box), body: { language: 'python', name } });
  await call('contexts.remove', one(box, name));
  return reply;
});
code.add('contexts.list', 'ok', async (call) => {
  const { id } = await createIn(box, call);
  const reply = await call('contexts.list', of(box));
  assert.ok(reply.body.some((context: Body) => context.id === id));
  await call('contexts.remove', one(box, id));
  return reply;
});
code.add('contexts.list', 'sandbox_not_found', (call) => call('contexts.list', of(UNKNOWN)));
code.add('contexts.get', 'ok', async (call, world) => {
  const name = world.fresh('context');
  const { id } = await createIn(box, call, name);
  const reply = await call('contexts.get', one(box, name));
  assert.equal(reply.body.id, id);
  await call('contexts.remove', one(box, id));
  return reply;
});
code.add('contexts.interrupt', 'ok', async (call) => {
  const { id: context } = await createIn(box, call);
  let ended: Body;
  const run = call('code.run', { ...of(box), body: { code: 'while True: pass', context } }).then((reply) => {
    ended = reply.body;
  });
  const isBusy = async () => (await call('contexts.get', one(box, context))).body.status === 'busy';
  await waitUntil(isBusy, { timeoutMs: 60_000, what: 'the code runs' });
  const reply = await call('contexts.interrupt', one(box, context));
  // An interruption that came before the code began had nothing to interrupt.
  const isOver = async () => {
    if (ended === undefined) await call('contexts.interrupt', one(box, context));
    return ended !== undefined;
  };
  await waitUntil(isOver, { timeoutMs: 60_000, what: 'the code is interrupted' });
  await run;
  assert.equal(ended.status, 'interrupted', JSON.stringify(ended));
  await call('contexts.remove', one(box, context));
  return reply;
});
code.add('contexts.restart', 'ok', async (call) => {
  const { id: context } = await createIn(box, call);
  await call('code.run', { ...of(box), body: { code: 'kept = 1', context } });
  const reply = await call('contexts.restart', one(box, context));
  const after = await call('code.run', { ...of(box), body: { code: 'kept', context } });
  assert.equal(after.body.exception.name, 'NameError');
  await call('contexts.remove', one(box, context));
  return reply;
});
code.add('contexts.remove', 'ok', async (call) => {
  const { id } = await createIn(box, call);
  const reply = await call('contexts.remove', one(box, id));
  assert.equal((await call('contexts.get', one(box, id))).status, 404);
  return reply;
});

for (const operation of ABOUT_ONE) {
  const about = (sandbox: Body, context: string): Parts => {
    const { body }: Parts = REQUESTS[operation];
    if (body === undefined) return one(sandbox, context);
    return { ...of(sandbox), body: { ...(body as object), context } };
  };
  code.add(operation, 'sandbox_not_found', (call) => call(operation, about(UNKNOWN, 'x')));
  code.add(operation, 'sandbox_not_running', async (call, world) => {
    return await call(operation, about(await world.created(), 'x'));
  });
  code.add(operation, 'context_not_found', (call) => call(operation, about(box, 'nobodys')));
  code.add(operation, 'context_lost', (call) => call(operation, about(restarted, lost.id)));
}
for (const operation of BEGINNING) {
  code.add(operation, 'payload_too_large', async (call) => {
    const large = 'x'.repeat(4 * 1024 * 1024);
    const body = operation === 'contexts.create' ? { language: 'python', cwd: large } : { code: large };
    return await call(operation, { ...of(box), body });
  });
}
code.add('contexts.create', 'sandbox_not_found', async (call) => {
  return await call('contexts.create', { ...of(UNKNOWN), ...CODE_REQUESTS['contexts.create'] });
});
code.add('contexts.create', 'sandbox_not_running', async (call, world) => {
  return await call('contexts.create', { ...of(await world.created()), ...CODE_REQUESTS['contexts.create'] });
});

code.phase('contexts of a sandbox that has as many as it may', {
  enter: async (world) => {
    const call = world.caller('key');
    for (let count = 0; count < MAX_CONTEXTS; count += 1) await createIn(restarted, call);
  },
});
code.add('contexts.create', 'quota_exceeded', async (call) => {
  return await call('contexts.create', { ...of(restarted), ...CODE_REQUESTS['contexts.create'] });
});

code.outage('code');
for (const operation of BEGINNING) {
  code.add(operation, 'orchestrator_unreachable', async (call) => {
    return streamed(await call(operation, { ...of(box), ...CODE_REQUESTS[operation] }));
  });
}

function one({ id }: Body, context: string): Parts {
  return { params: { sandbox_id: id, context_id: context } };
}

async function createIn({ id }: Body, call: Call, name?: string): Promise<Body> {
  const body = { language: 'python', ...(name === undefined ? {} : { name }) };
  const reply = await call('contexts.create', { params: { sandbox_id: id }, body });
  assert.equal(reply.status, 200, JSON.stringify(reply.body));
  return reply.body;
}

/** What fails when the head of the answer is sent is told by an event, with what would have been its body. */
function streamed(reply: Reply): Reply {
  const data =
    typeof reply.body === 'string' ? /^event: error\ndata: (.*)$/m.exec(reply.body)?.[1] : undefined;
  if (data === undefined) return reply;
  const body = JSON.parse(data) as { readonly error: { readonly code: ErrorCode } };
  return { ...reply, status: ERROR_STATUS[body.error.code], body };
}
