import {
  isInitializeRequest,
  LATEST_PROTOCOL_VERSION,
  SUPPORTED_PROTOCOL_VERSIONS,
} from '@modelcontextprotocol/sdk/types.js';

/**
 * The version on which the SDK will agree with this client. @returns undefined when the message does not begin a
 * session
 */
export function negotiateVersion(message: unknown): string | undefined {
  if (!isInitializeRequest(message)) return undefined;
  const { protocolVersion } = message.params;
  return SUPPORTED_PROTOCOL_VERSIONS.includes(protocolVersion) ? protocolVersion : LATEST_PROTOCOL_VERSION;
}

/**
 * The version of a request: the one agreed on at the start of the session, not the one in the header; but an unknown
 * version is passed on for the SDK to refuse.
 */
export function versionOf(header: string | undefined, agreed: string | undefined): string | undefined {
  if (agreed === undefined || header === undefined || !SUPPORTED_PROTOCOL_VERSIONS.includes(header))
    return header;
  return agreed;
}
