import { ROOT, type AhoCorasick, type State } from './aho-corasick.ts';
import type { Escapes } from './escapes.ts';

/** A part of a text: a placeholder, or the text between two. */
export type Part =
  | { readonly kind: 'clear'; readonly text: string }
  | { readonly kind: 'found'; readonly text: string; readonly index: number };

export interface Compiled {
  readonly automaton: AhoCorasick;
  readonly escapes: Escapes;
}

interface Occurrence {
  readonly end: number;
  readonly index: number;
  /** Index of the placeholder. */
  readonly length: number;
}

/**
 * Scans a text that arrives in chunks once, in time linear in the text and the occurrences. Positions count from the beginning of the
 * text. Holds back only characters that may belong to a placeholder.
 */
export class PlaceholderScan {
  readonly #automaton: AhoCorasick;
  readonly #escapes: Escapes;
  /** Sorted by their beginning. */
  readonly #occurrences = new Map<number, Occurrence>();
  #held = '';
  #heldFrom = 0;
  /** State after the raw text. */
  #plain: State = ROOT;
  /** State after the decoded text, without an escape that the last chunk may have ended within. */
  #decoded: State = ROOT;
  #cut = '';
  #decodedCount = 0;
  /** Positions of the latest decoded bytes, as a ring buffer. */
  #starts: Float64Array | null = null;

  constructor({ automaton, escapes }: Compiled) {
    this.#automaton = automaton;
    this.#escapes = escapes;
  }

  get heldLength(): number {
    return this.#held.length;
  }

  push(piece: string, isLast: boolean): readonly Part[] {
    const from = this.#heldFrom + this.#held.length;
    const end = from + piece.length;
    this.#readPlain(piece, from);
    this.#readDecoded(this.#cut + piece, from - this.#cut.length, isLast);
    this.#held += piece;
    const parts: Part[] = [];
    for (;;) {
      const until = isLast ? end : this.#openFrom(end);
      const found = this.#nextOccurrence(until);
      this.#give(parts, found?.start ?? until, null);
      if (found === null) return parts;
      this.#give(parts, found.end, found.index);
    }
  }

  #readPlain(text: string, from: number): void {
    const automaton = this.#automaton;
    let [state, end] = [this.#plain, from];
    const note = (index: number, length: number) => this.#note(end - length, { end, index, length });
    for (let at = 0; at < text.length; at++) {
      state = automaton.next(state, text.charCodeAt(at));
      end += 1;
      if (state !== ROOT) automaton.ending(state, note);
    }
    this.#plain = state;
  }

  #readDecoded(text: string, from: number, isLast: boolean): void {
    this.#cut = '';
    for (let at = 0; at < text.length;) {
      const code = text.charCodeAt(at);
      const escape = isEscaping(code) ? this.#escapes.read(text, at, isLast) : null;
      if (escape === 'cut') {
        this.#cut = text.slice(at);
        return;
      }
      const end = at + (escape?.length ?? 1);
      if (escape === null) this.#readByte(code, from + at, from + end);
      else for (const byte of escape.bytes) this.#readByte(byte.charCodeAt(0), from + at, from + end);
      at = end;
    }
  }

  #readByte(byte: number, start: number, end: number): void {
    const state = this.#automaton.next(this.#decoded, byte);
    this.#decoded = state;
    this.#decodedCount += 1;
    if (state === ROOT) return;
    const starts = (this.#starts ??= new Float64Array(ringSize(this.#automaton.maxDepth)));
    starts[(this.#decodedCount - 1) & (starts.length - 1)] = start;
    this.#automaton.ending(state, (index, length) =>
      this.#note(this.#startOf(length), { end, index, length }),
    );
  }

  /** Positions of the last decoded bytes: at most as many as the state is deep. */
  #startOf(length: number): number {
    const starts = this.#starts ?? new Float64Array(1);
    return starts[(this.#decodedCount - length) & (starts.length - 1)] ?? 0;
  }

  #note(start: number, occurrence: Occurrence): void {
    const known = this.#occurrences.get(start);
    const isLonger =
      known === undefined ||
      occurrence.length > known.length ||
      (occurrence.length === known.length && occurrence.end > known.end);
    if (isLonger) this.#occurrences.set(start, occurrence);
  }

  /** The earliest position at which further text can complete a placeholder, or a longer one. */
  #openFrom(end: number): number {
    const cutAt = end - this.#cut.length;
    return Math.min(
      this.#openStart(this.#plain, (depth) => end - depth) ?? end,
      this.#openStart(this.#decoded, (depth) => this.#startOf(depth)) ?? end,
      this.#cut !== '' && this.#escapes.canBegin(this.#cut) ? Math.max(cutAt, this.#heldFrom) : end,
    );
  }

  /** Occurrences that begin within an earlier placeholder are ignored. */
  #openStart(state: State, startOf: (depth: number) => number): number | null {
    let open = this.#automaton.openOf(state);
    while (open !== ROOT) {
      const start = startOf(this.#automaton.depthOf(open));
      if (start >= this.#heldFrom) return start;
      open = this.#automaton.openOf(this.#automaton.failOf(open));
    }
    return null;
  }

  #nextOccurrence(until: number): (Occurrence & { readonly start: number }) | null {
    if (this.#occurrences.size === 0) return null;
    for (let start = this.#heldFrom; start < until; start++) {
      const occurrence = this.#occurrences.get(start);
      if (occurrence !== undefined) return { start, ...occurrence };
    }
    return null;
  }

  #give(parts: Part[], until: number, index: number | null): void {
    const length = until - this.#heldFrom;
    if (length <= 0) return;
    const text = this.#held.slice(0, length);
    this.#held = this.#held.slice(length);
    if (this.#occurrences.size > 0)
      for (let at = this.#heldFrom; at < until; at++) this.#occurrences.delete(at);
    this.#heldFrom = until;
    parts.push(index === null ? { kind: 'clear', text } : { kind: 'found', text, index });
  }
}

/** The percent sign, the backslash and the plus. */
function isEscaping(code: number): boolean {
  return code === 0x25 || code === 0x5c || code === 0x2b;
}

/** A power of two, so that a ring position is the lower bits of a count. */
function ringSize(count: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(1, count)));
}
