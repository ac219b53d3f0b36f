import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/sdk/types.js';

/**
 * Clients show their model the structured form or the content, never both, and which one differs among them. So a text that is
 * the answer is in the content alone, or else half of the models would not see it, or all of it would travel twice.
 */
export function toResult(
  content: ContentBlock[],
  fields: Record<string, unknown>,
  isText: boolean,
): CallToolResult {
  if (!isText) return { content, structuredContent: fields };
  return Object.keys(fields).length === 0 ? { content } : { content, _meta: { result: fields } };
}
