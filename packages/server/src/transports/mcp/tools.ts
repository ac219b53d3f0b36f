import { OPERATIONS, type OperationOutput } from '@svc/contract';
import { WORK_TOOLS, type ToolHints, type WorkToolName } from '@svc/contract/mcp';
import type { Tool } from '@modelcontextprotocol/sdk/types.js';
import type { RpcMethod } from '../rpc/methods.ts';
import { shownSchema } from './shown-schema.ts';

/** The presentation of an operation to a model. */
interface ToolView<Method extends RpcMethod = RpcMethod> {
  readonly operation: Method;
  readonly title: string;
  readonly description: string;
  readonly annotations: ToolHints;
  readonly toText: (output: OperationOutput<Method>) => string;
  /** The structured part of the result; absent: none. */
  readonly toFields?: (output: OperationOutput<Method>) => Record<string, unknown>;
  /** As in `ToolSchema`. */
  readonly isText: boolean;
}

const TOOLS = {
  sandbox_start: tool({
    operation: 'sandbox.start',
    title: 'Start a sandbox',
    description:
      'Start a sandbox and wait until it runs. Give config.image (for example "python" or "node") the first time; later starts ' +
      'may leave config out and find the same configuration and disk. Starting a running sandbox changes nothing.',
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: true },
    toText: (message) => message,
    isText: true,
  }),
  sandbox_stop: tool({
    operation: 'sandbox.stop',
    title: 'Stop a sandbox',
    description:
      'Stop a sandbox and everything that runs in it. Its disk and configuration are kept; variables of its interpreters are lost.',
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    toText: (message) => message,
    isText: true,
  }),
  sandbox_run_code: tool({
    operation: 'sandbox.repl.run',
    title: 'Run code in a sandbox',
    description:
      'Run Python or JavaScript in a running sandbox. Variables, functions and imports stay for later calls. The code runs as one ' +
      'unit; the value of a last expression is shown. Start the sandbox first with sandbox_start.',
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
    toText: ({ output, error }) => joinStreams(output, error),
    toFields: ({ output: _output, error: _error, language: _language, ...fields }) => fields,
    isText: true,
  }),
  sandbox_run_command: tool({
    operation: 'sandbox.command.run',
    title: 'Run a command in a sandbox',
    description:
      'Run a program in a running sandbox and wait for its end. No shell is involved: for pipes and the like use command "sh" with ' +
      'args ["-c", "..."]. Start the sandbox first with sandbox_start.',
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
    toText: ({ output, error, exit_code: exitCode }) =>
      joinStreams(output, error) + (exitCode === 0 ? '' : `[exit code ${exitCode}]\n`),
    toFields: ({ output: _output, error: _error, command: _command, args: _args, ...fields }) => fields,
    isText: true,
  }),
  sandbox_get_metrics: tool({
    operation: 'sandbox.metrics.get',
    title: 'Show sandboxes and what they use',
    description:
      'Show one sandbox, or all of a namespace: whether they run, and their use of CPU, memory and disk.',
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    toText: ({ sandboxes }) => sandboxes.map(describeUsage).join('\n') || 'There are no sandboxes',
    toFields: (metrics) => metrics,
    isText: false,
  }),
} as const;

export type ToolName = keyof typeof TOOLS;

/** All tools: those that are methods of JSON-RPC too, and those for agents only. */
export const TOOL_LIST = [...Object.keys(TOOLS), ...Object.keys(WORK_TOOLS)] as readonly (
  | ToolName
  | WorkToolName
)[];

/** A type error when an operation has no tool. */
const TOOL_NAMES: Readonly<Record<RpcMethod, ToolName>> = {
  'sandbox.start': 'sandbox_start',
  'sandbox.stop': 'sandbox_stop',
  'sandbox.repl.run': 'sandbox_run_code',
  'sandbox.command.run': 'sandbox_run_command',
  'sandbox.metrics.get': 'sandbox_get_metrics',
};

export function isToolName(name: string): name is ToolName {
  return Object.hasOwn(TOOLS, name);
}

export function operationOf(name: ToolName): RpcMethod {
  return TOOLS[name].operation;
}

/** The tool of an operation. */
export function toolOf(operation: RpcMethod): ToolName {
  return TOOL_NAMES[operation];
}

export function describeTools(): Tool[] {
  return [...describeMethods(), ...describeWorkTools()];
}

function describeWorkTools(): Tool[] {
  return Object.entries(WORK_TOOLS).map(([name, { title, description, hints, input }]) => ({
    name,
    title,
    description,
    inputSchema: shownSchema(input),
    annotations: shownHints(hints),
  }));
}

function describeMethods(): Tool[] {
  return Object.entries(TOOLS).map(([name, { operation, title, description, annotations }]) => ({
    name,
    title,
    description,
    inputSchema: shownSchema(OPERATIONS[operation].input),
    annotations: shownHints(annotations),
  }));
}

/** Without the hints that have no meaning for a read-only tool. */
function shownHints({ readOnlyHint, openWorldHint, ...changes }: ToolHints): Tool['annotations'] {
  return readOnlyHint ? { readOnlyHint, openWorldHint } : { readOnlyHint, ...changes, openWorldHint };
}

/** The result of the operation as people and programs see it. */
export function showOutput(
  name: ToolName,
  output: unknown,
): { readonly text: string; readonly fields: Record<string, unknown>; readonly isText: boolean } {
  const { toText, toFields, isText } = TOOLS[name] as ToolView<never>;
  // The operation of this tool has returned it.
  const own = output as never;
  return { text: toText(own), fields: toFields?.(own) ?? {}, isText };
}

function describeUsage(usage: OperationOutput<'sandbox.metrics.get'>['sandboxes'][number]): string {
  const { namespace, name, running, cpu_usage: cpu, memory_usage: memory, disk_usage: disk } = usage;
  const label = `${namespace}/${name}`;
  return running
    ? `${label}: running, CPU ${cpu} %, memory ${memory} MiB, disk ${disk} bytes`
    : `${label}: not running`;
}

function joinStreams(output: string, error: string): string {
  if (error === '') return output;
  const lead = output === '' || output.endsWith('\n') ? output : `${output}\n`;
  return `${lead}[stderr]\n${error}`;
}

function tool<Method extends RpcMethod>(view: ToolView<Method>): ToolView<Method> {
  return view;
}
