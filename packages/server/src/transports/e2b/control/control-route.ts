import type { E2bCall } from '../wire/e2b-call.ts';
import type { TokenTarget } from '../wire/sandbox-tokens.ts';
import type { E2bParts } from '../wire/e2b-parts.ts';

export type TokenOf = (target: TokenTarget) => string;

/** A request to the control plane in E2B's words. */
export interface ControlRequest {
  readonly call: E2bCall;
  /** The token for the caller, which ends with its key. */
  readonly tokenOf: TokenOf;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
  /** Null: the client gave none. */
  readonly idempotencyKey: string | null;
  /** Identifies a repeated request. */
  readonly identity: string;
}

export interface ControlAnswer {
  readonly status: number;
  /** Absent: the answer has no body. */
  readonly body?: unknown;
  /** Position behind the last entry of a list; absent: there is no more. */
  readonly nextToken?: string;
}

export type ControlHandler = (parts: E2bParts, request: ControlRequest) => Promise<ControlAnswer>;

/** `METHOD path`, with `:name` for parts of the path. */
export type ControlRoutes = Readonly<Record<string, ControlHandler>>;
