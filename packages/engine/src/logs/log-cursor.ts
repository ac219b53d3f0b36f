import { PlatformError } from '@svc/contract/errors';

/** A position in a log: byte `offset` of file `generation`. */
export interface LogPlace {
  readonly generation: number;
  readonly offset: number;
}

const CURSOR_BYTES = 17;

/**
 * A cursor in the format of the reference client: base64 of a count byte and that many (u64 LE generation, u64 LE offset).
 * We write one pair; the empty cursor `AA==` is the beginning.
 */
export function encodeCursor(place: LogPlace): string {
  const bytes = Buffer.alloc(CURSOR_BYTES);
  bytes.writeUInt8(1, 0);
  bytes.writeBigUInt64LE(BigInt(place.generation), 1);
  bytes.writeBigUInt64LE(BigInt(place.offset), 9);
  return bytes.toString('base64');
}

/** Undefined for the empty cursor. @throws PlatformError `invalid_cursor` */
export function decodeCursor(cursor: string): LogPlace | undefined {
  const bytes = Buffer.from(cursor, 'base64');
  if (bytes.toString('base64') === cursor && bytes.length === 1 && bytes[0] === 0) return undefined;
  if (bytes.toString('base64') !== cursor || bytes.length !== CURSOR_BYTES || bytes[0] !== 1) throw invalid();
  const generation = Number(bytes.readBigUInt64LE(1));
  const offset = Number(bytes.readBigUInt64LE(9));
  if (!Number.isSafeInteger(generation) || !Number.isSafeInteger(offset)) throw invalid();
  return { generation, offset };
}

function invalid(): PlatformError {
  return new PlatformError('invalid_cursor', 'cursor: use the cursor of an earlier entry, unchanged', {
    details: { field: 'cursor' },
  });
}
