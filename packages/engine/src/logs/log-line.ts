import { isUtf8 } from 'node:buffer';
import type { LogSource } from '@svc/contract/orchestrator';

/** One line of a log file. Bytes that are not UTF-8 are kept as base64 in `b` instead of `d`, so nothing is lost. */
export interface LogLine {
  /** RFC 3339 */
  readonly t: string;
  readonly s: LogSource;
  readonly d?: string;
  readonly b?: string;
  /** Key of the process; absent for system lines. */
  readonly id?: string;
  /** Offset in the process's stream behind the last byte of this line. */
  readonly o?: number;
  /** Offset of its other stream at that time: rotation may have deleted the lines that contain it. */
  readonly x?: number;
}

export function encodeData(data: Uint8Array): { d: string } | { b: string } {
  return isUtf8(data)
    ? { d: Buffer.from(data).toString('utf8') }
    : { b: Buffer.from(data).toString('base64') };
}

export function textOf(line: LogLine): string {
  return line.d ?? Buffer.from(line.b ?? '', 'base64').toString('utf8');
}

/**
 * How many of these bytes end on a character border. At most three are held back: a longer tail is not the beginning of a UTF-8
 * character.
 */
export function completeLength(data: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, data.length); back++) {
    const byte = data[data.length - back] ?? 0;
    if ((byte & 0b1100_0000) === 0b1000_0000) continue;
    return byte >= 0b1100_0000 && back < characterLength(byte) ? data.length - back : data.length;
  }
  return data.length;
}

function characterLength(lead: number): number {
  if (lead >= 0b1111_0000) return 4;
  return lead >= 0b1110_0000 ? 3 : 2;
}
