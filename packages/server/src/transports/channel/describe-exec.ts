import { FrameError } from '@svc/contract/frames';
import { CborReader } from './cbor-reader.ts';

const EXEC_REQUESTS: ReadonlySet<string> = new Set(['core.exec.request', 'svc.detached.start']);
const MAX_COMMAND_LENGTH = 256;
const BODY_START = 9;
/**
 * SAFETY: the sandbox keeps a byte order mark as a character. If the decoder dropped it, a key with one would be read
 * here as a key that the sandbox ignores.
 */
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** What the audit log records of a requested process. The environment is omitted, because it may hold secrets. */
export interface ExecDescription {
  /** Program and arguments, truncated when long. */
  readonly command: string;
  readonly user: string | null;
  readonly tty: boolean;
}

/**
 * Describes the process that a frame requests; undefined when the frame requests something else. Reads every byte at
 * most once and keeps only what is shown, so the cost is linear.
 * @throws FrameError when the frame cannot be decoded, so that a client cannot start a process that only the sandbox
 * understands
 */
export function describeExec(frame: Uint8Array): ExecDescription | undefined {
  let type: string | undefined;
  let payload: Uint8Array | undefined;
  readFields(frame.subarray(BODY_START), {
    t: (reader) => (type = utf8.decode(reader.text())),
    p: (reader) => (payload = reader.bytes()),
  });
  if (type === undefined || payload === undefined)
    throw new FrameError('the frame body is not an envelope {v, t, p}');
  return EXEC_REQUESTS.has(type) ? describeRequest(payload) : undefined;
}

function describeRequest(payload: Uint8Array): ExecDescription {
  const words: string[] = [];
  let user: string | null = null;
  let tty = false;
  readFields(payload, {
    cmd: (reader) => words.unshift(beginning(reader.text())),
    args: (reader) => words.push(...firstWords(reader)),
    user: (reader) => (user = reader.isText() ? beginning(reader.text()) : (reader.skip(), null)),
    tty: (reader) => (tty = reader.isTrue()),
  });
  const command = words.join(' ');
  const isLong = command.length > MAX_COMMAND_LENGTH;
  return { command: isLong ? `${command.slice(0, MAX_COMMAND_LENGTH).toWellFormed()}…` : command, user, tty };
}

type FieldReaders = Readonly<Record<string, (reader: CborReader) => unknown>>;

/** Reads a map that fills all bytes. Refuses duplicate fields: two readers may disagree on which one counts. */
function readFields(bytes: Uint8Array, fields: FieldReaders): void {
  const reader = new CborReader(bytes);
  const seen = new Set<string>();
  for (const entries = reader.map(); entries.next();) {
    const name = reader.isText() ? utf8.decode(reader.text()) : undefined;
    if (name === undefined) throw new FrameError('a key of a map is no text');
    if (seen.has(name)) throw new FrameError('a map has one key twice');
    if (Object.hasOwn(fields, name)) {
      seen.add(name);
      fields[name]?.(reader);
    } else reader.skip();
  }
  reader.end();
}

/** The first words, as many as are shown; skips the rest. */
function firstWords(reader: CborReader): readonly string[] {
  const words: string[] = [];
  let length = 0;
  for (const items = reader.array(); items.next();) {
    if (!reader.isText() || length > MAX_COMMAND_LENGTH) {
      reader.skip();
      continue;
    }
    const word = beginning(reader.text());
    length += word.length + 1;
    words.push(word);
  }
  return words;
}

/**
 * Cuts the text at the number of bytes that covers the shown characters, of up to four bytes each; a character that
 * the cut splits is not shown.
 */
function beginning(text: Uint8Array): string {
  return utf8.decode(text.subarray(0, 4 * (MAX_COMMAND_LENGTH + 1))).slice(0, MAX_COMMAND_LENGTH + 1);
}
