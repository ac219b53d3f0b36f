/** Renders a page: one line per entry, and how to get the next page. */
export function listText(lines: readonly string[], nextCursor: string | null, ifEmpty: string): string {
  if (lines.length === 0) return ifEmpty;
  return [...lines, ...(nextCursor === null ? [] : [`[there is more: cursor "${nextCursor}"]`])].join('\n');
}
