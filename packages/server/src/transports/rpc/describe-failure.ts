import { PlatformError, type ErrorCode } from '@svc/contract';
import { unavailableIfOutOfFiles } from '@svc/contract/out-of-files';
import { RPC_CODE, rpcError, type RpcError } from '../http/rpc-envelope.ts';
import { RPC_METHODS, type RpcMethod } from './methods.ts';

export interface RpcFailure {
  readonly error: RpcError;
  /** The HTTP status of a single request. Application errors are 200. */
  readonly status: number;
}

/** The error that a caller receives. A bug becomes `internal`, with the id under which the log has the details. */
export function describeFailure(method: RpcMethod, thrown: unknown, requestId: string): RpcFailure {
  const error = unavailableIfOutOfFiles(thrown);
  if (PlatformError.is(error)) return describePlatformError(method, error);
  const message = `${RPC_METHODS[method]}: the server met a bug; its log says more under request ${requestId}`;
  const data = { code: 'internal' satisfies ErrorCode, request_id: requestId };
  return { error: rpcError(RPC_CODE.operationFailed, message, data), status: 200 };
}

/** @returns undefined when the error is not a refusal of the caller */
export function describeRefusal(error: PlatformError): RpcFailure | undefined {
  const data = { code: error.code, ...error.details };
  const refusal = rpcError(RPC_CODE.authentication, error.message, data);
  if (error.code === 'invalid_api_key') return { error: refusal, status: 401 };
  if (error.code === 'forbidden') return { error: refusal, status: 403 };
  return undefined;
}

function describePlatformError(method: RpcMethod, error: PlatformError): RpcFailure {
  const refusal = describeRefusal(error);
  if (refusal !== undefined) return refusal;
  const { code, message, details } = error;
  // Not for a conflict with the current state: the parameters themselves are well formed.
  if (!error.isConflict && (code === 'invalid_request' || code === 'invalid_sandbox_config')) {
    return { error: rpcError(RPC_CODE.invalidParams, message, { ...details }), status: 200 };
  }
  const text = code === 'sandbox_not_found' ? message : `${RPC_METHODS[method]}: ${message}`;
  return {
    error: rpcError(RPC_CODE.operationFailed, text, { code, ...details }),
    status: code === 'orchestrator_unreachable' ? 502 : 200,
  };
}
