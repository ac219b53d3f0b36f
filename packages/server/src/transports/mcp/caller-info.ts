import type { AuthInfo } from '@modelcontextprotocol/sdk/server/auth/types.js';
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js';
import type { ServerNotification, ServerRequest } from '@modelcontextprotocol/sdk/types.js';
import type { Caller } from '../../access/caller.ts';

/** Properties of the HTTP request that a call arrived with. */
export interface CallerInfo {
  readonly caller: Caller;
  readonly requestId: string;
  /** The client's address; null when it is not an IP address. */
  readonly sourceAddress: string | null;
  readonly userAgent: string;
}

/** The second argument of a message handler in the SDK. */
export type ToolExtra = RequestHandlerExtra<ServerRequest, ServerNotification>;

/** The SDK passes one value from a request to its message handlers; it carries our properties, without the key. */
export function toAuthInfo(info: CallerInfo): AuthInfo {
  return { token: '', clientId: info.caller.kind, scopes: [], extra: { ...info } };
}

export function callerOf(authInfo: AuthInfo | undefined): CallerInfo {
  if (authInfo?.extra === undefined) throw new Error('a message came without a caller');
  // `toAuthInfo` sets it for every request.
  return authInfo.extra as unknown as CallerInfo;
}
