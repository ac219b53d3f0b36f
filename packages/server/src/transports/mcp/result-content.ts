import type { ContentBlock } from '@modelcontextprotocol/sdk/types.js';
import type { CodeRunResult } from '@svc/contract';

/** Image types that models accept. */
const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const;

/**
 * Converts results of code for a model: one image per result that has one. The text of results is in the output
 * already, so text is added only for results that cannot be shown.
 */
export function contentOfResults(results: readonly CodeRunResult[]): ContentBlock[] {
  return results.flatMap(({ data, left_out: leftOut }) => {
    const mimeType = IMAGE_TYPES.find((type) => typeof data[type] === 'string');
    const images: ContentBlock[] =
      mimeType === undefined ? [] : [{ type: 'image', mimeType, data: data[mimeType] as string }];
    const notes = leftOut.map(({ type, message }): ContentBlock => ({
      type: 'text',
      text: `[${type} was left out: ${message}]`,
    }));
    return [...images, ...notes];
  });
}
