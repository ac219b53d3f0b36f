const MASK_BYTES = 4;

/**
 * Masks, or unmasks, a part of a WebSocket's payload in place (RFC 6455, section 5.3); `position` is where in the payload it
 * begins. Whole words where the memory is aligned, because that is four times as fast.
 */
export function applyMask(bytes: Uint8Array, mask: Uint8Array, position = 0): void {
  const unaligned = Math.min((4 - (bytes.byteOffset & 3)) & 3, bytes.length);
  const words = (bytes.length - unaligned) >> 2;
  const turned = turn(mask, position);
  maskBytes(bytes, turned, 0, unaligned);
  if (words > 0) {
    const word = new Uint32Array(turn(turned, unaligned).buffer)[0] ?? 0;
    const view = new Uint32Array(bytes.buffer, bytes.byteOffset + unaligned, words);
    for (let index = 0; index < words; index++) view[index] = (view[index] ?? 0) ^ word;
  }
  maskBytes(bytes, turned, unaligned + words * 4, bytes.length);
}

/** The mask rotated for a part that begins `by` bytes later. */
function turn(mask: Uint8Array, by: number): Uint8Array {
  return Uint8Array.from({ length: MASK_BYTES }, (_, index) => mask[(index + by) & 3] ?? 0);
}

function maskBytes(bytes: Uint8Array, mask: Uint8Array, start: number, end: number): void {
  for (let index = start; index < end; index++) bytes[index] = (bytes[index] ?? 0) ^ (mask[index & 3] ?? 0);
}
