import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { waitUntil } from '@svc/contract/testing';
import type { RestOperationName } from '@svc/contract/rest';
import { TestSandbox } from '../../engine/sandbox-fixture.ts';
import { ALL_FILE_OPERATIONS, FILE_REQUESTS } from './file-requests.ts';
import { Outcomes } from './outcomes.ts';
import { one, REQUESTS, startIn, TALKING } from './process-requests.ts';
import type { Parts, Reply, World } from './world.ts';

type Body = Reply['body'];

/** They need the sandbox. */
const ASKING = ['processes.remove', 'processes.output', ...TALKING] as const;

/** Its PID 1 is stopped. */
let deaf: Body;
let unheard: Body;
const answers = new Map<string, Promise<Reply>>();

/** Sends every request at once, because each takes a while to fail; the answers are checked later. */
export async function askDeafSandbox(world: World): Promise<void> {
  deaf = await world.running();
  unheard = await startIn(deaf, world.caller('key'));
  await signalInit(world, deaf, 'SIGSTOP');
  const params = { sandbox_id: deaf.id };
  for (const way of ['key', 'user'] as const) {
    const ask = (operation: RestOperationName, request: Parts) => {
      const answer = world.caller(way)(operation, request);
      // The check of this answer reports the failure.
      answer.catch(() => undefined);
      answers.set(`${operation} ${way}`, answer);
    };
    for (const operation of ASKING) ask(operation, { ...REQUESTS[operation], ...one(unheard) });
    ask('processes.start', { params, body: { cmd: 'true' } });
    ask('lifecycle.keepAlive', { params });
    for (const operation of ALL_FILE_OPERATIONS)
      ask(operation, { ...FILE_REQUESTS[operation]('/etc/passwd'), params });
  }
}

/** After `askDeafSandbox`. */
export const deafSandbox = new Outcomes();

deafSandbox.phase('processes of a sandbox that does not answer');
for (const operation of [
  'processes.start',
  'lifecycle.keepAlive',
  ...ASKING,
  ...ALL_FILE_OPERATIONS,
] as const) {
  deafSandbox.add(operation, 'unavailable', async (_call, _world, way) => {
    const answer = await answers.get(`${operation} ${way}`);
    assert.ok(answer);
    return answer;
  });
}

let stopping: Promise<unknown>;
deafSandbox.phase('processes of a sandbox that is being stopped', {
  enter: async ({ server }) => {
    const { client } = server.engine;
    // Longer than any timeout: no process of the sandbox handles the signal.
    stopping = client.stopSandbox(deaf.id, { graceMs: 120_000 });
    const isStopping = async () => (await client.getSandbox(deaf.id)).state === 'stopping';
    await waitUntil(isStopping, { timeoutMs: 60_000, what: 'it is being stopped' });
    // A server that was connected to it before would still be.
    await server.kill();
    await server.launch();
  },
  leave: async (world) => {
    await signalInit(world, deaf, 'SIGCONT');
    await stopping;
  },
});
for (const operation of TALKING) {
  deafSandbox.add(operation, 'sandbox_not_running', async (call) => {
    return await call(operation, { ...REQUESTS[operation], ...one(unheard) });
  });
}

/** To PID 1 of a sandbox, from outside. */
async function signalInit(
  { server: { engine } }: World,
  { id }: Body,
  signal: NodeJS.Signals,
): Promise<void> {
  const sandbox = new TestSandbox(engine, await engine.client.getSandbox(id));
  const init = sandbox.hostPids().find((pid) => {
    try {
      return /^NSpid:.*\t1$/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
    } catch {
      // It has ended: others come and go.
      return false;
    }
  });
  assert.ok(init, 'the sandbox has no PID 1');
  process.kill(init, signal);
}
