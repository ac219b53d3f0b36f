import type { ErrorCode } from '@svc/contract';
import { toolOf } from './tools.ts';
import { RPC_METHODS, type RpcMethod } from '../rpc/methods.ts';

const METHODS = Object.keys(RPC_METHODS) as RpcMethod[];

/** What a model can do about a failure, where the reason alone does not say it. */
const NEXT_STEPS: Partial<Record<ErrorCode, string>> = {
  sandbox_not_found:
    'Call sandbox_start with config.image to make it, or sandbox_get_metrics to see which sandboxes there are.',
  invalid_state_transition: 'Call sandbox_stop, wait for its answer, then call sandbox_start again.',
  image_not_found: 'Call sandbox_start with another config.image, for example "python" or "node".',
  invalid_image: 'Call sandbox_start with another config.image, for example "python" or "node".',
  image_pull_failed: 'Call sandbox_start again, or with another config.image.',
  insufficient_capacity:
    'Call sandbox_get_metrics to see what runs, and sandbox_stop for what is not needed any more.',
  quota_exceeded:
    'Call sandbox_get_metrics to see what runs, and sandbox_stop for what is not needed any more.',
  exec_timeout: 'Call the tool again with a larger timeout, or with less to do.',
  unavailable:
    'Call the tool again in a moment; if that does not help, call sandbox_stop and then sandbox_start.',
};

const OUT_OF_MEMORY =
  'Call sandbox_start with config.image and a larger config.memory (MiB); without them it starts again with as little as before.';
const FOR_OPERATORS = 'Commands that begin with svc are for the operator of this server.';

/**
 * The reason of a failure in the words of those who call tools: other surfaces call the same things by other names. What can be
 * done next is said with it.
 */
export function inWordsOfTools(message: string, data: Readonly<Record<string, unknown>> | null): string {
  const told = METHODS.reduce((text, method) => text.replaceAll(method, toolOf(method)), message);
  const next = data?.['reason'] === 'oom' ? OUT_OF_MEMORY : NEXT_STEPS[data?.['code'] as ErrorCode];
  const operators = /\bsvc [a-z]/.test(told) ? FOR_OPERATORS : undefined;
  const more = [next, operators].filter((sentence) => sentence !== undefined);
  return more.length === 0 ? told : [told.replace(/\.?$/, '.'), ...more].join(' ');
}
