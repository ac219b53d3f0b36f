import { codeOperations } from './code.ts';
import { commandOperations } from './commands.ts';
import { healthOperations } from './health.ts';
import { metricsOperations } from './metrics.ts';
import type { InputOf, Operation, OutputOf } from './operation.ts';
import { sandboxOperations } from './sandboxes.ts';

/** All operations. JSON-RPC methods have these names; MCP tools and routes map onto them. */
export const OPERATIONS = {
  ...healthOperations,
  ...sandboxOperations,
  ...metricsOperations,
  ...codeOperations,
  ...commandOperations,
} as const satisfies Record<string, Operation>;

export type OperationName = keyof typeof OPERATIONS;
export type OperationInput<Name extends OperationName> = InputOf<(typeof OPERATIONS)[Name]>;
export type OperationOutput<Name extends OperationName> = OutputOf<(typeof OPERATIONS)[Name]>;

export function isOperationName(value: string): value is OperationName {
  return Object.hasOwn(OPERATIONS, value);
}
