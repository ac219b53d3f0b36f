import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { isErrno } from '@svc/contract/errno';
import { ERROR_STATUS, PlatformError, type ErrorCode } from '@svc/contract';
import { unavailableIfOutOfFiles } from '@svc/contract/out-of-files';
import { failure, isRpcPath, RPC_CODE, rpcError, type RpcResponse } from './rpc-envelope.ts';

export interface HttpFailure {
  readonly status: number;
  readonly body: RpcResponse;
}

/** The answer to a request that failed before a call. The body is a JSON-RPC error envelope with any status. */
export function describeHttpFailure(thrown: unknown, requestId: string): HttpFailure {
  const error = unavailableIfOutOfFiles(thrown);
  if (PlatformError.is(error)) {
    const { code, message, details } = error;
    const body = failure(null, rpcError(rpcCodeOf(code), message, { code, ...details }));
    return { status: ERROR_STATUS[code], body };
  }
  const status = statusOf(error);
  if (status === undefined) {
    const message = `The server met a bug; its log says more under request ${requestId}`;
    const data = { code: 'internal', request_id: requestId };
    return { status: 500, body: failure(null, rpcError(RPC_CODE.operationFailed, message, data)) };
  }
  const message = MESSAGES[status] ?? 'Invalid Request';
  const code = status === 400 ? RPC_CODE.parseError : RPC_CODE.invalidRequest;
  return { status, body: failure(null, rpcError(code, message)) };
}

/** Answers bytes that are not HTTP, without the framework, which is not involved yet. */
export function refuseConnection(error: NodeJS.ErrnoException, socket: Socket): void {
  if (isErrno(error, 'ECONNRESET') || !socket.writable) return void socket.destroy();
  const status = CLIENT_ERROR_STATUS[error.code ?? ''] ?? 400;
  const message = MESSAGES[status] ?? 'The request is not valid HTTP';
  const body = JSON.stringify(
    wasRpcRequest(error)
      ? failure(null, rpcError(RPC_CODE.invalidRequest, message))
      : { error: { code: REST_CODE[status] ?? 'invalid_request', message, details: null } },
  );
  const head = `HTTP/1.1 ${status} Refused\r\nconnection: close\r\ncontent-type: application/json\r\n`;
  socket.end(
    `${head}x-request-id: ${randomUUID()}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

/** The received bytes begin with the request line. */
function wasRpcRequest(error: NodeJS.ErrnoException & { readonly rawPacket?: Buffer }): boolean {
  const [, address = ''] = error.rawPacket?.subarray(0, 64).toString('latin1').split(' ', 2) ?? [];
  return isRpcPath(address);
}

const REST_CODE: Readonly<Record<number, ErrorCode>> = { 413: 'payload_too_large' };

const MESSAGES: Readonly<Record<number, string>> = {
  400: 'Parse error',
  404: 'Not found',
  405: 'Method not allowed',
  408: 'The request did not arrive in time',
  413: 'The request body is too large',
  415: 'The Content-Type must be application/json',
  431: 'The request headers are too large',
};

const CLIENT_ERROR_STATUS: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

/** The status of an error of the HTTP framework about the request; undefined for other errors. */
function statusOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('statusCode' in error)) return undefined;
  const { statusCode } = error;
  return typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500 ? statusCode : undefined;
}

function rpcCodeOf(code: PlatformError['code']): number {
  if (code === 'invalid_api_key') return RPC_CODE.authentication;
  if (code === 'not_found') return RPC_CODE.methodNotFound;
  return ERROR_STATUS[code] < 500 ? RPC_CODE.invalidRequest : RPC_CODE.operationFailed;
}
