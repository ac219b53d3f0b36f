/** The messages of JSON-RPC 2.0 (https://www.jsonrpc.org/specification). */
export type RpcId = string | number | null;

export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data: Readonly<Record<string, unknown>> | null;
}

/** `id` is absent when the request had none. */
export type RpcResponse =
  | { readonly jsonrpc: '2.0'; readonly result: unknown; readonly id?: RpcId }
  | { readonly jsonrpc: '2.0'; readonly error: RpcError; readonly id?: RpcId };

export interface RpcRequest {
  readonly method: string;
  readonly params: unknown;
  /** Undefined: the request has no id. */
  readonly id: RpcId | undefined;
}

export const RPC_CODE = {
  parseError: -32_700,
  invalidRequest: -32_600,
  methodNotFound: -32_601,
  invalidParams: -32_602,
  operationFailed: -32_603,
  authentication: -32_002,
} as const;

/** The paths whose failures are JSON-RPC errors. All others use the envelope of REST. */
export function isRpcPath(url: string): boolean {
  return /^\/((legacy\/)?api\/v1\/rpc|mcp)(?=[/?]|$)/.test(url);
}

export function failure(id: RpcId | undefined, error: RpcError): RpcResponse {
  return { jsonrpc: '2.0', error, ...(id === undefined ? {} : { id }) };
}

export function success(id: RpcId | undefined, result: unknown): RpcResponse {
  return { jsonrpc: '2.0', result, ...(id === undefined ? {} : { id }) };
}

export function rpcError(code: number, message: string, data: RpcError['data'] = null): RpcError {
  return { code, message, data };
}

/** Parses a request. Returns the problem otherwise, with the id if there is a valid one. */
export function readRequest(
  value: unknown,
): { readonly request: RpcRequest } | { readonly error: RpcError; readonly id: RpcId } {
  const invalid = rpcError(RPC_CODE.invalidRequest, 'Invalid Request');
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { error: invalid, id: null };
  const { jsonrpc, method, params, id } = value as Partial<
    Record<'jsonrpc' | 'method' | 'params' | 'id', unknown>
  >;
  if (!isId(id)) return { error: invalid, id: null };
  if (jsonrpc !== '2.0') {
    const error = rpcError(RPC_CODE.invalidRequest, 'Invalid or missing jsonrpc version field');
    return { error, id: id ?? null };
  }
  const hasParams = params === undefined || typeof params === 'object';
  if (typeof method !== 'string' || !hasParams) return { error: invalid, id: id ?? null };
  return { request: { method, params: params ?? {}, id } };
}

function isId(value: unknown): value is RpcId | undefined {
  return value === undefined || value === null || typeof value === 'string' || typeof value === 'number';
}
