import assert from 'node:assert/strict';
import type { RestOperationName } from '@svc/contract/rest';
import type { Call, Parts, Reply } from './world.ts';

type Body = Reply['body'];
type ProcessOperation = Extract<RestOperationName, `processes.${string}`>;

/** What is asked of a process. */
export const REQUESTS: Readonly<
  Record<Exclude<ProcessOperation, 'processes.start' | 'processes.list'>, Parts>
> = {
  'processes.get': {},
  'processes.output': {},
  'processes.remove': {},
  'processes.signal': { body: { signal: 'SIGUSR1' } },
  'processes.writeStdin': { body: 'input\n' },
  'processes.resize': { body: { rows: 24, cols: 80 } },
};
/** The keys of the record. */
export const ABOUT_ONE = Object.keys(REQUESTS) as (keyof typeof REQUESTS)[];
/** They need the process itself. */
export const TALKING = ['processes.signal', 'processes.writeStdin', 'processes.resize'] as const;

const WAIT = 'while :; do sleep 1; done';

/** A process that waits until it is ended, unless another script is given. */
export async function startIn({ id }: Body, call: Call, script = WAIT, more: object = {}): Promise<Body> {
  const name = `p${Math.random().toString(36).slice(2)}`;
  const body = { cmd: 'sh', args: ['-c', script], name, stdin: true, ...more };
  const reply = await call('processes.start', { params: { sandbox_id: id }, body });
  assert.equal(reply.status, 200, JSON.stringify(reply.body));
  return reply.body;
}

export function one({ sandbox_id, id }: Body): Parts {
  return { params: { sandbox_id, process_id: id } };
}
