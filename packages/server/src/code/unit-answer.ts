/** How a unit ended, according to the driver. */
export type UnitEnd = 'success' | 'error' | 'interrupted';

export interface UnitAnswer {
  readonly end: UnitEnd;
  /** Streams that the user's code has closed for good. */
  readonly lostStreams: readonly ('stdout' | 'stderr')[];
  /** The value of a last expression as it was shown. */
  readonly result: string | null;
  /** The exception that ended the code. */
  readonly exception: UnitException | null;
  /** How many units the interpreter had run with this one; null: it does not say. */
  readonly executionCount: number | null;
}

export interface UnitException {
  readonly name: string;
  readonly message: string;
  readonly traceback: string;
  /** Frames of the code that was sent, outermost first. */
  readonly frames: readonly UnitFrame[];
}

export interface UnitFrame {
  readonly file: string;
  readonly line: number;
  readonly function: string;
  readonly source: string;
}

const ENDS: Readonly<Record<number, UnitEnd>> = { 0x73: 'success', 0x65: 'error', 0x69: 'interrupted' };
const HEAD_BYTES = 2;
const LOST_STDOUT = 1;
const LOST_STDERR = 2;
/** Result; name, message, traceback and frames of an exception; the number of the unit. */
const TEXTS = 6;
/** Drivers of earlier versions send no frames and no number. */
const LEAST_TEXTS = 4;
const MAX_FRAMES = 50;
const MAX_FRAME_TEXT = 500;
const LENGTH_BYTES = 4;
const NO_TEXT = 0xff_ff_ff_ff;

/** Undefined when it cannot be from the driver. See drivers/python-wire.py. */
export function readUnitAnswer(bytes: Buffer): UnitAnswer | undefined {
  const [status = 0, lost = 0] = bytes;
  const end = ENDS[status];
  if (end === undefined) return undefined;
  const texts: (string | null)[] = [];
  let position = HEAD_BYTES;
  while (texts.length < TEXTS) {
    if (bytes.length === position && texts.length >= LEAST_TEXTS) break;
    if (bytes.length < position + LENGTH_BYTES) return undefined;
    const length = bytes.readUInt32BE(position);
    position += LENGTH_BYTES;
    const next = position + (length === NO_TEXT ? 0 : length);
    if (bytes.length < next) return undefined;
    texts.push(length === NO_TEXT ? null : bytes.toString('utf8', position, next));
    position = next;
  }
  const [result = null, name = null, message, traceback, frames, count] = texts;
  return {
    end,
    lostStreams: [
      ...((lost & LOST_STDOUT) === 0 ? [] : (['stdout'] as const)),
      ...((lost & LOST_STDERR) === 0 ? [] : (['stderr'] as const)),
    ],
    result,
    exception:
      name === null
        ? null
        : { name, message: message ?? '', traceback: traceback ?? '', frames: readFrames(frames ?? '[]') },
    executionCount: /^\d{1,15}$/.test(count ?? '') ? Number(count) : null,
  };
}

/** Entries that cannot be from the driver are left out. */
function readFrames(text: string): readonly UnitFrame[] {
  let said: unknown;
  try {
    said = JSON.parse(text);
  } catch {
    return [];
  }
  const frames = Array.isArray(said) ? said.slice(-MAX_FRAMES) : [];
  return frames.flatMap((frame: unknown) => {
    const [file, line, name, source] = Array.isArray(frame) ? (frame as readonly unknown[]) : [];
    if (typeof file !== 'string' || !Number.isSafeInteger(line)) return [];
    return [{ file: cut(file), line: line as number, function: cut(name), source: cut(source) }];
  });
}

function cut(text: unknown): string {
  return typeof text === 'string' ? text.slice(0, MAX_FRAME_TEXT).toWellFormed() : '';
}
