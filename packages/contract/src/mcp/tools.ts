import { PlatformError } from '../errors.ts';
import { nameProblem } from '../operations/check-name.ts';
import { DEFAULT_NAMESPACE } from '../operations/sandbox-reference.ts';
import { compile, type Validator } from '../schema/compile.ts';
import { firstProblem } from '../schema/first-problem.ts';
import { fileTools } from './file-tools.ts';
import { processTools } from './process-tools.ts';
import { sandboxTools, snapshotTools } from './sandbox-tools.ts';
import { searchTools } from './search-tools.ts';
import type { ToolInput, ToolOutput, ToolSchema } from './tool-schema.ts';

/** The MCP tools that are not JSON-RPC methods: files, processes and search for agents in a sandbox. */
export const WORK_TOOLS = {
  ...sandboxTools,
  ...fileTools,
  ...searchTools,
  ...processTools,
  ...snapshotTools,
} as const satisfies Record<string, ToolSchema>;

export type WorkTools = typeof WORK_TOOLS;
export type WorkToolName = keyof WorkTools;
export type WorkToolInput<Name extends WorkToolName> = ToolInput<WorkTools[Name]>;
export type WorkToolOutput<Name extends WorkToolName> = ToolOutput<WorkTools[Name]>;

export function isWorkToolName(name: string): name is WorkToolName {
  return Object.hasOwn(WORK_TOOLS, name);
}

const validators = new Map<WorkToolName, Validator>();

/**
 * Checks what a caller sent. Names come first, as everywhere, because their messages are public.
 * @returns it with the namespace that it means
 * @throws PlatformError `invalid_request` with details `{field, reason}`
 */
export function checkToolInput<Name extends WorkToolName>(
  name: Name,
  value: Readonly<Record<string, unknown>>,
): { readonly input: WorkToolInput<Name>; readonly namespace: string } {
  const { sandbox, namespace } = value;
  if (typeof sandbox === 'string') refuse('sandbox', nameProblem('Sandbox name', sandbox));
  if (typeof namespace === 'string') refuse('namespace', nameProblem('Namespace', namespace));
  if (!validatorOf(name).check(value)) {
    const { field, reason } = firstProblem(WORK_TOOLS[name].input, value, 'arguments');
    throw new PlatformError('invalid_request', `Invalid params: ${field} ${reason}`, {
      details: { field, reason },
    });
  }
  return {
    // The schema that was just checked is the one that this type is derived from.
    input: value as WorkToolInput<Name>,
    namespace: typeof namespace === 'string' ? namespace : DEFAULT_NAMESPACE,
  };
}

function refuse(field: string, problem: string | undefined): void {
  if (problem === undefined) return;
  throw new PlatformError('invalid_request', problem, { details: { field, reason: problem } });
}

function validatorOf(name: WorkToolName): Validator {
  let validator = validators.get(name);
  if (validator === undefined) validators.set(name, (validator = compile(WORK_TOOLS[name].input)));
  return validator;
}
