import { ClientRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import {
  failure,
  RPC_CODE,
  rpcError,
  type RpcError,
  type RpcId,
  type RpcResponse,
} from '../http/rpc-envelope.ts';

const REQUESTS = new Map(
  ClientRequestSchema.options.map((schema) => [schema.shape.method.value as string, schema]),
);

/** A validation error, as far as callers see it. */
interface Issue {
  readonly code?: string | undefined;
  readonly path: readonly PropertyKey[];
  readonly message: string;
  readonly expected?: string;
  readonly values?: readonly unknown[];
  readonly keys?: readonly string[];
}

/**
 * Validates the requests of a body before the SDK, which reports wrong parameters as its own failure, with the
 * complete output of its validator. @returns the answer to the whole body, or undefined when every request in it is
 * well formed
 */
export function checkMessages(body: unknown): RpcResponse | readonly RpcResponse[] | undefined {
  if (!Array.isArray(body)) {
    const problem = problemOf(body);
    return problem === undefined ? undefined : failure(idOf(body), problem);
  }
  const problems = body.map(problemOf);
  if (problems.every((problem) => problem === undefined)) return undefined;
  const notRun = rpcError(RPC_CODE.invalidRequest, 'Not run: another message of this batch is invalid');
  return body.flatMap((message, index) =>
    isRequest(message) ? [failure(idOf(message), problems[index] ?? notRun)] : [],
  );
}

/** @returns undefined also for messages that are not requests, and for unknown methods: the SDK answers them */
function problemOf(message: unknown): RpcError | undefined {
  if (!isRequest(message)) return undefined;
  const schema = REQUESTS.get(message.method);
  if (schema === undefined) return undefined;
  const checked = schema.safeParse(message);
  const [issue] = checked.success ? [] : (checked.error.issues as readonly Issue[]);
  if (issue === undefined) return undefined;
  const field = issue.path[0] === 'params' && issue.path.length > 1 ? issue.path.slice(1) : issue.path;
  const name = field.map(String).join('.');
  const reason = reasonOf(issue, valueAt(message, issue.path));
  return rpcError(RPC_CODE.invalidParams, `Invalid params: ${name} ${reason}`, { field: name, reason });
}

function reasonOf({ code, expected, values, keys, message }: Issue, value: unknown): string {
  if (value === undefined) return 'is missing';
  if (code === 'invalid_type' && expected !== undefined) return `must be ${NOUNS[expected] ?? expected}`;
  if (code === 'invalid_value' && values !== undefined) return `must be one of ${values.join(', ')}`;
  if (code === 'unrecognized_keys' && keys !== undefined) return `has an unknown field ${keys[0]}`;
  if (code === 'invalid_union') return 'must be a string or an integer';
  return `is invalid: ${message}`;
}

const NOUNS: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'an integer',
  boolean: 'a boolean',
  array: 'an array',
  object: 'an object',
  record: 'an object',
};

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (inner, name) => (inner as Readonly<Record<PropertyKey, unknown>> | null | undefined)?.[name],
    value,
  );
}

function isRequest(message: unknown): message is { readonly method: string; readonly id: unknown } {
  if (typeof message !== 'object' || message === null) return false;
  const { jsonrpc, method, id } = message as Partial<Record<'jsonrpc' | 'method' | 'id', unknown>>;
  const hasId = typeof id === 'string' || typeof id === 'number';
  return jsonrpc === '2.0' && typeof method === 'string' && hasId;
}

function idOf(message: unknown): RpcId {
  // Checked to be a request before.
  return (message as { readonly id: RpcId }).id;
}
