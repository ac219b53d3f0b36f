import { open } from 'node:fs/promises';
import type { LogPlace } from './log-cursor.ts';
import type { LogLine } from './log-line.ts';

export interface PlacedLine {
  readonly line: LogLine;
  readonly place: LogPlace;
  readonly next: LogPlace;
}

const PIECE_BYTES = 256 * 1024;

/**
 * The complete lines of a log file from `place` on, in chunks: a reader holds one chunk, independent of the file size, and yields to other
 * work in between. Empty when rotation has just deleted the file.
 */
export async function* readLines(path: string, place: LogPlace): AsyncGenerator<PlacedLine[]> {
  const file = await open(path, 'r').catch(() => undefined);
  if (file === undefined) return;
  try {
    let { offset } = place;
    let held: Buffer = Buffer.alloc(0);
    for (;;) {
      const piece = Buffer.allocUnsafe(PIECE_BYTES);
      const { bytesRead } = await file.read(piece, 0, PIECE_BYTES, offset + held.length);
      if (bytesRead === 0) return;
      const bytes = Buffer.concat([held, piece.subarray(0, bytesRead)]);
      const whole = bytes.lastIndexOf(NEWLINE) + 1;
      if (whole > 0) yield linesIn(bytes.subarray(0, whole), { generation: place.generation, offset });
      offset += whole;
      held = Buffer.from(bytes.subarray(whole));
    }
  } finally {
    await file.close();
  }
}

const NEWLINE = 0x0a;

function linesIn(bytes: Buffer, { generation, offset }: LogPlace): PlacedLine[] {
  const lines: PlacedLine[] = [];
  let start = 0;
  for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
    const line = parseLine(bytes.toString('utf8', start, end));
    const next = { generation, offset: offset + end + 1 };
    if (line !== undefined) lines.push({ line, place: { generation, offset: offset + start }, next });
    start = end + 1;
  }
  return lines;
}

function parseLine(text: string): LogLine | undefined {
  try {
    // Written by `SandboxLog`; a torn line does not parse.
    return JSON.parse(text) as LogLine;
  } catch {
    return undefined;
  }
}
