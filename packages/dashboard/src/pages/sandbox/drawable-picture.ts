import type { CodeRunResult } from '@svc/sdk';
import { drawableSvg } from './drawable-svg.ts';
import { costOfPicture } from './picture-cost.ts';

/** The endings that files of them have. */
const ENDINGS = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/gif': 'gif',
  'image/webp': 'webp',
} as const;
type BytesType = keyof typeof ENDINGS;

/** A picture of bytes among the forms of a result. */
export interface PictureOfBytes {
  readonly type: BytesType;
  readonly base64: string;
  readonly ending: string;
}

/**
 * The address of the picture of a result, and what it costs to draw. Null: it has none, or none that costs at most `budget`.
 * SAFETY: a picture in `img`, an SVG too, runs no script and loads nothing.
 */
export function drawablePicture(
  result: CodeRunResult,
  budget: number,
): { readonly address: string; readonly cost: number } | null {
  for (const { type, base64 } of picturesOfBytes(result)) {
    const cost = costOfPicture(base64);
    if (cost <= budget) return { address: `data:${type};base64,${base64}`, cost };
  }
  const drawn = result.svg === undefined ? null : drawableSvg(result.svg, budget);
  if (drawn === null) return null;
  return { address: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(drawn.svg)}`, cost: drawn.cost };
}

/** Those that a result has, the one that is shown rather than others first. The server has made their base64 whole. */
export function picturesOfBytes({ data }: CodeRunResult): readonly PictureOfBytes[] {
  // The keys of the table.
  return (Object.keys(ENDINGS) as BytesType[]).flatMap((type) => {
    const base64 = data[type];
    return typeof base64 === 'string' ? [{ type, base64, ending: ENDINGS[type] }] : [];
  });
}
