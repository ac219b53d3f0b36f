import type { ImageContent, TextContent } from '@modelcontextprotocol/sdk/types.js';

/** One red pixel. */
export const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
/** A header and no sound. */
export const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';

export const IMAGE: ImageContent = { type: 'image', data: PNG, mimeType: 'image/png' };

export function text(value: string): TextContent {
  return { type: 'text', text: value };
}
