import { sizeOfPicture } from './picture-size.ts';

/** What a browser draws in the time that nobody notices, of all pictures of a run together; see decision 145. */
export const MAX_PICTURE_COST = 50_000;
/** What a graphics card takes at once, and as far as anybody scrolls. */
const MAX_SIDE = 16_384;
/** Pixels that cost as much as an element of an SVG: kept, and unpacked once more for each frame. */
const [PIXELS, PIXELS_OF_FRAME, FRAME] = [1000, 10_000, 10];

/** What it costs to show a picture of bytes; infinite when nothing vouches for it. */
export function costOfPicture(base64: string): number {
  const size = sizeOfPicture(base64);
  if (size === null || Math.max(size.width, size.height) > MAX_SIDE) return Number.POSITIVE_INFINITY;
  const pixels = size.width * size.height;
  return pixels / PIXELS + size.frames * (FRAME + pixels / PIXELS_OF_FRAME);
}
