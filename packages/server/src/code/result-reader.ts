import {
  MAX_FORM_BYTES,
  MAX_RESULTS,
  MAX_RESULTS_BYTES,
  MIME_TYPE_PATTERN,
  PlatformError,
  TABLE_TYPE,
  isResultTable,
  type CodeRunResult,
  type LeftOut,
} from '@svc/contract';
import { costOfJson } from '@svc/contract/bounded-json';
import type { ResultBytes } from './result-pieces.ts';

const TEXT = 'text/plain';
const ANY = '*/*';
const MAX_FORMS = 32;
/** What is read of a run before its forms are counted: drivers send no more. */
const MAX_READ_BYTES = 3 * MAX_RESULTS_BYTES;
/** For all results of a run together: they are parsed on the thread that serves all users. */
const MAX_COST = { parts: 100_000, elements: 500_000 };
const MAX_METADATA_LENGTH = 16 * 1024;
const MAX_MESSAGE_LENGTH = 500;
const TYPE = new RegExp(MIME_TYPE_PATTERN);
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const MIB = 1024 * 1024;
const IN_A_FILE = 'write it to a file and download that';
const MESSAGES: Readonly<Record<LeftOut['reason'], string>> = {
  too_large: `larger than ${MAX_FORM_BYTES / MIB} MiB, which is the most; ${IN_A_FILE}`,
  too_many: `the results of a run have ${MAX_RESULTS_BYTES / MIB} MiB together at most; show less at once, or ${IN_A_FILE}`,
  failed: 'the value could not be shown in this form',
  invalid: 'what the value gave is not of this type',
};

/**
 * Makes results of what a driver sends, for one run. User code shares the process of the driver and may send anything in its
 * name, so every result is checked: its shape, and the limits on all results of a run together.
 */
export class ResultReader {
  #count = 0;
  #left = MAX_RESULTS_BYTES;
  #readBytes = 0;
  #costLeft = MAX_COST;
  /** One was the value of a last expression. */
  hasMain = false;
  isTruncated = false;

  /** Undefined for those that are too many. */
  read(bytes: ResultBytes): CodeRunResult | undefined {
    this.#count += 1;
    this.#readBytes += bytes?.length ?? 0;
    if (this.#count > MAX_RESULTS || this.#readBytes > MAX_READ_BYTES) {
      this.isTruncated = true;
      return undefined;
    }
    const parsed = bytes === null ? { leftOut: leaveOut(ANY, null, 'invalid') } : this.#parse(bytes);
    if ('leftOut' in parsed) return this.#without(parsed.leftOut);
    const { said } = parsed;
    const leftOut = readLeftOut(said['left_out']);
    const data = this.#takeForms(recordOf(said['data']), leftOut);
    if (leftOut.length > 0) this.isTruncated = true;
    const isMain = said['main'] === true;
    if (isMain) this.hasMain = true;
    return {
      data,
      metadata: readMetadata(recordOf(said['metadata']), data),
      is_main_result: isMain,
      truncated: leftOut.length > 0,
      left_out: leftOut,
    };
  }

  #without(all: LeftOut): CodeRunResult {
    this.isTruncated = true;
    return { data: {}, metadata: {}, is_main_result: false, truncated: true, left_out: [all] };
  }

  /** What was said, or why nothing of it is kept. */
  #parse(
    bytes: Buffer,
  ): { readonly said: Readonly<Record<string, unknown>> } | { readonly leftOut: LeftOut } {
    try {
      const { parts, elements } = costOfJson(bytes, this.#costLeft);
      this.#costLeft = { parts: this.#costLeft.parts - parts, elements: this.#costLeft.elements - elements };
      return { said: recordOf(JSON.parse(bytes.toString())) };
    } catch (error) {
      if (PlatformError.is(error)) {
        const why = String(error.details?.['reason']);
        return { leftOut: leaveOut(ANY, bytes.length, 'too_many', why) };
      }
      // Not from a driver, or something of it was not read in time.
      return { leftOut: leaveOut(ANY, null, 'invalid') };
    }
  }

  /** For a value that is only in the answer of the driver. */
  readMain(text: string): CodeRunResult | undefined {
    return this.read(Buffer.from(JSON.stringify({ data: { [TEXT]: text }, main: true })));
  }

  #takeForms(forms: Readonly<Record<string, unknown>>, leftOut: LeftOut[]): Record<string, unknown> {
    const measured = Object.entries(forms)
      .slice(0, MAX_FORMS)
      .filter(([type]) => TYPE.test(type))
      .map(([type, value]) => ({ type, ...measure(type, value) }))
      .toSorted((one, other) => one.bytes - other.bytes);
    const taken: [string, unknown][] = [];
    // The smallest first, so that as many as possible have room.
    for (const { type, value, bytes } of measured) {
      if (value === undefined) leftOut.push(leaveOut(type, null, 'invalid'));
      else if (bytes > MAX_FORM_BYTES) leftOut.push(leaveOut(type, bytes, 'too_large'));
      else if (bytes > this.#left) leftOut.push(leaveOut(type, bytes, 'too_many'));
      else {
        this.#left -= bytes;
        taken.push([type, value]);
      }
    }
    return Object.fromEntries(taken);
  }
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  const isRecord = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isRecord ? (value as Record<string, unknown>) : {};
}

/** A value of `undefined`: it is not of its type. */
function measure(type: string, value: unknown): { readonly value: unknown; readonly bytes: number } {
  const form = formOf(type, value);
  if (form === undefined) return { value: undefined, bytes: 0 };
  const text = typeof form === 'string' ? form : JSON.stringify(form);
  return { value: form, bytes: Buffer.byteLength(text) };
}

function formOf(type: string, value: unknown): unknown {
  if (type === TABLE_TYPE) return isResultTable(value) ? value : undefined;
  return type === 'application/json' || type.endsWith('+json') ? value : textOf(type, value);
}

function textOf(type: string, value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  const isBinary =
    (type.startsWith('image/') && type !== 'image/svg+xml') ||
    type === 'application/pdf' ||
    /^(?:audio|video)\//.test(type);
  if (!isBinary) return value.toWellFormed();
  const packed = value.replaceAll(/\s+/g, '');
  return isBase64(packed) ? packed : undefined;
}

/** What every decoder takes: some are content with less. */
function isBase64(text: string): boolean {
  const digits = text.replace(/=+$/, '').length;
  return BASE64.test(text) && digits % 4 !== 1 && (digits === text.length || text.length % 4 === 0);
}

function readMetadata(
  metadata: Readonly<Record<string, unknown>>,
  data: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const known = Object.entries(metadata).filter(([type]) => Object.hasOwn(data, type));
  const kept = Object.fromEntries(known);
  if (JSON.stringify(kept).length > MAX_METADATA_LENGTH) return {};
  return kept;
}

/** What the driver itself has left out. */
function readLeftOut(entries: unknown): LeftOut[] {
  if (!Array.isArray(entries)) return [];
  return entries.slice(0, MAX_FORMS).flatMap((entry) => {
    const { type, bytes, reason, detail } = recordOf(entry);
    if (typeof type !== 'string' || !TYPE.test(type)) return [];
    const known = typeof reason === 'string' && Object.hasOwn(MESSAGES, reason) ? reason : 'failed';
    const size = Number.isSafeInteger(bytes) ? (bytes as number) : null;
    return [leaveOut(type, size, known as LeftOut['reason'], typeof detail === 'string' ? detail : '')];
  });
}

function leaveOut(type: string, bytes: number | null, reason: LeftOut['reason'], detail = ''): LeftOut {
  const said = detail === '' ? '' : `: ${detail.slice(0, MAX_MESSAGE_LENGTH).toWellFormed()}`;
  return { type, bytes, reason, message: `${MESSAGES[reason]}${said}` };
}
