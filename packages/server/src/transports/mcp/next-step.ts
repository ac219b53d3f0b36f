import type { ErrorCode } from '@svc/contract';
import { isOperator, type Caller } from '../../access/caller.ts';
import { toolOf } from './tools.ts';
import { RPC_METHODS, type RpcMethod } from '../rpc/methods.ts';

/** The code of a failure, with its details. */
export type FailureData = Readonly<Record<string, unknown>> | null;

const METHODS = Object.keys(RPC_METHODS) as RpcMethod[];

const MAKE_ROOM =
  'Call sandbox_get_metrics to see what runs, and sandbox_stop for what is not needed any more.';
const OTHER_IMAGE = 'Call sandbox_start with another config.image, for example "python" or "node".';

/** Hints for a model on how to continue, for errors whose reason does not say it. */
const NEXT_STEPS: Partial<Record<ErrorCode, string>> = {
  sandbox_not_found:
    'Call sandbox_start with config.image to make it, or sandbox_get_metrics to see which sandboxes there are.',
  invalid_state_transition: 'Call sandbox_stop, wait for its answer, then call sandbox_start again.',
  image_not_found: OTHER_IMAGE,
  invalid_image: OTHER_IMAGE,
  image_pull_failed: 'Call sandbox_start again, or with another config.image.',
  insufficient_capacity: MAKE_ROOM,
  quota_exceeded: MAKE_ROOM,
  exec_timeout:
    'Call the tool again with a larger timeout, or with less to do; sandbox_start_process runs it in the background.',
  process_not_found: 'Call sandbox_list_processes to see which there are.',
  snapshot_not_found: 'Call sandbox_list_snapshots to see which there are.',
  snapshot_ineligible: 'Call sandbox_start, then this tool again.',
  not_found: 'Call sandbox_list_files to see what is there.',
  disk_full: 'Call sandbox_remove_file for what is not needed any more.',
  payload_too_large:
    'Use parts of it: sandbox_download_file has offset and length, sandbox_upload_file has append.',
  org_not_found: 'Call sandbox_start with this namespace to begin it.',
  unavailable:
    'Call the tool again in a moment; if that does not help, call sandbox_stop and then sandbox_start.',
};

const OUT_OF_MEMORY =
  'Call sandbox_start with config.image and a larger config.memory (MiB); without them it starts again with as little as before.';
/** The hint for a running sandbox. */
export const MORE_MEMORY =
  'To give it more, call sandbox_stop, then sandbox_start with config.image and a larger config.memory (MiB), which begins with a new ' +
  'disk; to keep the files, call sandbox_create_snapshot in between, and sandbox_start_from_snapshot with memory instead.';
const FOR_OPERATORS = 'Commands that begin with svc are for the operator of this server.';

/**
 * The reason of a failure in terms of tools, because other surfaces use other names, with a hint on how to continue.
 */
export function inWordsOfTools(message: string, data: FailureData, caller?: Caller): string {
  const text = METHODS.reduce((words, method) => words.replaceAll(method, toolOf(method)), message);
  const operators = /\bsvc [a-z]/.test(text) ? FOR_OPERATORS : undefined;
  const more = [nextStep(data, caller), operators].filter((sentence) => sentence !== undefined);
  return more.length === 0 ? text : [text.replace(/\.?$/, '.'), ...more].join(' ');
}

function nextStep(data: FailureData, caller: Caller | undefined): string | undefined {
  if (data?.['reason'] === 'oom') return OUT_OF_MEMORY;
  const isElsewhere = data?.['code'] === 'forbidden' && data['namespace'] !== undefined;
  if (isElsewhere && caller !== undefined && !isOperator(caller)) {
    return `Call the tool with namespace "${caller.namespace}", which is the one of this key.`;
  }
  return NEXT_STEPS[data?.['code'] as ErrorCode];
}
