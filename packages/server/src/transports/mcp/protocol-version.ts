import {
  isInitializeRequest,
  LATEST_PROTOCOL_VERSION,
  SUPPORTED_PROTOCOL_VERSIONS,
} from '@modelcontextprotocol/sdk/types.js';

/** What the SDK will agree on with this client. @returns undefined when the message does not begin a session */
export function negotiateVersion(message: unknown): string | undefined {
  if (!isInitializeRequest(message)) return undefined;
  const { protocolVersion } = message.params;
  return SUPPORTED_PROTOCOL_VERSIONS.includes(protocolVersion) ? protocolVersion : LATEST_PROTOCOL_VERSION;
}

/**
 * The version that a request is served with. What was agreed on at the beginning of the session counts, not what the request
 * says; but a version that nobody knows is left for the SDK to refuse.
 */
export function versionOf(header: string | undefined, agreed: string | undefined): string | undefined {
  if (agreed === undefined || header === undefined || !SUPPORTED_PROTOCOL_VERSIONS.includes(header))
    return header;
  return agreed;
}
