import { PlatformError } from './errors.ts';

/** No legitimate request is nested deeper; some checks recurse for each level. */
const MAX_DEPTH = 64;
/** Objects, arrays and keys. Per byte they take up to a hundred times as long to parse and check as text. */
const MAX_PARTS = 50_000;
/** The bytes of a file of 4 MiB may be given as numbers, one by one. */
const MAX_ELEMENTS = 4 * 1024 * 1024 + MAX_PARTS;

/** The cost of parsing a JSON text. */
export interface JsonCost {
  /** Objects, arrays and keys. */
  readonly parts: number;
  /** Values between commas, also numbers of one digit. */
  readonly elements: number;
}

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

const WHITE_SPACE: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);

const decoder = new TextDecoder('utf-8', { fatal: true });

/**
 * Parses untrusted JSON on the main thread: a text that would block the thread for long is refused before it is parsed, also
 * when it is within the size limit.
 * @throws PlatformError `invalid_request` when it has too many parts; anything else when it is not JSON in UTF-8
 */
export function parseBoundedJson(bytes: Uint8Array): unknown {
  costOfJson(bytes);
  return JSON.parse(decoder.decode(bytes));
}

/**
 * The same for a request, in which duplicate keys of an object are refused: parsers differ in which of the two they take, so a
 * proxy could have checked another request than this one.
 */
export function parseRequestJson(bytes: Uint8Array): unknown {
  const value = parseBoundedJson(bytes);
  const key = findRepeatedKey(bytes);
  if (key !== undefined) throw refused(`has the key ${JSON.stringify(key)} twice in one object; keep one`);
  return value;
}

/** `bytes` are JSON, so a string before a colon is a key. */
function findRepeatedKey(bytes: Uint8Array): string | undefined {
  const keysOfOpen: Set<string>[] = [];
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) keysOfOpen.push(new Set());
    else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) keysOfOpen.pop();
    if (byte !== QUOTE) continue;
    const start = at;
    at = endOfString(bytes, at + 1);
    if (!isBeforeColon(bytes, at + 1)) continue;
    // The text between two quotes of JSON that was parsed already.
    const key = JSON.parse(decoder.decode(bytes.subarray(start, at + 1))) as string;
    const keys = keysOfOpen.at(-1);
    if (keys?.has(key) === true) return key;
    keys?.add(key);
  }
  return undefined;
}

function isBeforeColon(bytes: Uint8Array, from: number): boolean {
  let at = from;
  while (WHITE_SPACE.has(bytes[at] ?? 0)) at += 1;
  return bytes[at] === COLON;
}

/**
 * Estimates the cost of parsing a text that may be JSON, for a fraction of that cost.
 * @throws PlatformError `invalid_request` when it is more than `most`, or it is nested too deep
 */
export function costOfJson(
  bytes: Uint8Array,
  most: JsonCost = { parts: MAX_PARTS, elements: MAX_ELEMENTS },
): JsonCost {
  let depth = 0;
  let parts = 0;
  let elements = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) at = endOfString(bytes, at + 1);
    else if (byte === COMMA) elements += 1;
    else if (byte === COLON) parts += 1;
    else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
      parts += 1;
      depth += 1;
      if (depth > MAX_DEPTH) throw refused(`is nested deeper than ${MAX_DEPTH} levels`);
    } else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) depth -= 1;
    if (parts > most.parts) throw refused(`has more than ${most.parts} objects, arrays and keys`);
    if (elements > most.elements) throw refused(`has more than ${most.elements} elements`);
  }
  return { parts, elements };
}

function endOfString(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}

function refused(reason: string): PlatformError {
  return new PlatformError('invalid_request', `The body ${reason}`, { details: { field: 'body', reason } });
}
