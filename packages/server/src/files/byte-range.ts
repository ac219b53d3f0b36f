import { PlatformError } from '@svc/contract';

/** Bytes from `start` up to, and without, `end`. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Reads a `Range` header (RFC 9110, section 14.2) for content of `size` bytes. Several ranges, other units and what is no range
 * are ignored, as the standard allows: then the whole content is the answer.
 * @throws PlatformError `range_not_satisfiable` when the range begins behind the end
 */
export function readRange(header: string | undefined, size: number): ByteRange | undefined {
  const [, first, last] = /^bytes=(\d{0,15})-(\d{0,15})$/i.exec(header?.replaceAll(' ', '') ?? '') ?? [];
  if (first === undefined || last === undefined || (first === '' && last === '')) return undefined;
  if (first === '') {
    const length = Number(last);
    if (length === 0) throw notSatisfiable(size);
    return { start: Math.max(0, size - length), end: size };
  }
  const start = Number(first);
  if (last !== '' && Number(last) < start) return undefined;
  if (start >= size) throw notSatisfiable(size);
  return { start, end: last === '' ? size : Math.min(Number(last) + 1, size) };
}

function notSatisfiable(size: number): PlatformError {
  const message = `the file has ${size} bytes; the range begins behind them`;
  return new PlatformError('range_not_satisfiable', message, { details: { field: 'range', size } });
}
