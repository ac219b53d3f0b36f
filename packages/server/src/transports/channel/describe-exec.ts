import { FrameError } from '@svc/contract/frames';
import { CborReader } from './cbor-reader.ts';

const EXEC_REQUESTS: ReadonlySet<string> = new Set(['core.exec.request', 'svc.detached.start']);
const MAX_COMMAND_LENGTH = 256;
const BODY_START = 9;
/** SAFETY: to the sandbox a byte order mark is a character. A key behind one is another key, and what it holds is not what runs. */
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** What the audit log says of a process that a client asks for. Its environment may hold secrets and is left out. */
export interface ExecDescription {
  /** Program and arguments, cut off when they are long. */
  readonly command: string;
  readonly user: string | null;
  readonly tty: boolean;
}

/**
 * Undefined when the frame asks for something else than a process. Looks at every byte at most once and keeps only what it
 * shows, so a large request costs no more than its length.
 * @throws FrameError when it cannot be read, so that nobody starts a process in a way that only the sandbox understands
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

/** Reads a map that is all of the bytes. A field that comes twice is refused: two readers may disagree which one counts. */
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

/** As many as can be shown; the others are passed over. */
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

/** A character has at most four bytes; what is cut in half at the end is beyond what is shown. */
function beginning(text: Uint8Array): string {
  return utf8.decode(text.subarray(0, 4 * (MAX_COMMAND_LENGTH + 1))).slice(0, MAX_COMMAND_LENGTH + 1);
}
