import assert from 'node:assert/strict';
import { BUSYBOX } from '../../engine/start-engine.ts';
import type { Ground, Json } from '../ground.ts';

export const NAMESPACE = 'rpc';
export const METHODS = ['sandbox.start', 'sandbox.stop', 'sandbox.repl.run', 'sandbox.command.run'];

/** The result of a call that succeeds. */
export async function call(ground: Ground, method: string, params: object): Promise<Json> {
  const { result, error } = await ground.rpc(method, { namespace: NAMESPACE, ...params });
  assert.equal(error, undefined, JSON.stringify(error));
  return result;
}

export const CONFIG = {
  image: BUSYBOX,
  memory: 96,
  cpus: 1,
  envs: ['GREETING=hello = world'],
  workdir: '/tmp',
  shell: '/bin/ash',
  scripts: { greet: '#!/bin/sh\necho "says $GREETING"\n' },
};

/** A sandbox that was started with everything that `config` has, but what needs the host. */
export async function startedBox(ground: Ground): Promise<string> {
  return await ground.shared('rpc', async () => {
    const sandbox = ground.fresh('flow');
    const result = await call(ground, 'sandbox.start', { sandbox, config: CONFIG });
    assert.equal(result, `Sandbox ${sandbox} started successfully`);
    return sandbox;
  });
}

export async function run(ground: Ground, script: string): Promise<Json> {
  const sandbox = await startedBox(ground);
  return await call(ground, 'sandbox.command.run', { sandbox, command: 'sh', args: ['-c', script] });
}

export async function prints(ground: Ground, script: string, expected: string): Promise<void> {
  assert.equal((await run(ground, script)).output, expected);
}

export async function failure(ground: Ground, method: string, params: object): Promise<Json> {
  const { result, error } = await ground.rpc(method, { namespace: NAMESPACE, ...params });
  assert.equal(result, undefined, 'it succeeded');
  return error;
}

export const below = (method: string, ...fields: readonly string[]) =>
  fields.map((field) => `${method}.${field}`);
