import type { AuthInfo } from '@modelcontextprotocol/sdk/server/auth/types.js';
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js';
import type { ServerNotification, ServerRequest } from '@modelcontextprotocol/sdk/types.js';
import type { Caller } from '../../access/caller.ts';

/** What a call needs to know of the HTTP request that it came with. */
export interface CallerInfo {
  readonly caller: Caller;
  readonly requestId: string;
  /** Of the client; null when it is no IP address. */
  readonly sourceAddress: string | null;
  readonly userAgent: string;
}

/** What the SDK hands to the handler of a message beside it. */
export type ToolExtra = RequestHandlerExtra<ServerRequest, ServerNotification>;

/** The SDK hands one thing from a request to the handlers of its messages; we put ours into it, and no key. */
export function toAuthInfo(info: CallerInfo): AuthInfo {
  return { token: '', clientId: info.caller.kind, scopes: [], extra: { ...info } };
}

export function callerOf(authInfo: AuthInfo | undefined): CallerInfo {
  if (authInfo?.extra === undefined) throw new Error('a message came without a caller');
  // Every request is given one by `toAuthInfo`.
  return authInfo.extra as unknown as CallerInfo;
}
