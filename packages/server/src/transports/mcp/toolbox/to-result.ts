import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/sdk/types.js';

/**
 * Clients show a model either the structured form or the content, and differ in which. So text is in the content
 * only: with it in the structured form alone, some models would not see it, and in both it would be sent twice.
 */
export function toResult(
  content: ContentBlock[],
  fields: Record<string, unknown>,
  isText: boolean,
): CallToolResult {
  if (!isText) return { content, structuredContent: fields };
  return Object.keys(fields).length === 0 ? { content } : { content, _meta: { result: fields } };
}
