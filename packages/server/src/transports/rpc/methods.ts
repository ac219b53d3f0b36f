import type { OperationName } from '@svc/contract';

/** The methods, with the start of the message when one fails. */
export const RPC_METHODS = {
  'sandbox.start': 'sandbox start failed',
  'sandbox.stop': 'sandbox stop failed',
  'sandbox.metrics.get': 'failed to get metrics',
  'sandbox.repl.run': 'execution failed',
  'sandbox.command.run': 'command execution failed',
} as const satisfies Partial<Record<OperationName, string>>;

export type RpcMethod = keyof typeof RPC_METHODS;

export function isRpcMethod(method: string): method is RpcMethod {
  return Object.hasOwn(RPC_METHODS, method);
}
