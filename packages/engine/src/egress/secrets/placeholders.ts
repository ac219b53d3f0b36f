import { AhoCorasick } from './aho-corasick.ts';
import { Escapes } from './escapes.ts';
import { toBytes } from './latin1.ts';
import { PlaceholderScan, type Compiled, type Part } from './placeholder-scan.ts';

/**
 * Finds placeholders in what a sandbox sends: in the text as it is, and in the text with its escapes read (percent, JSON). Where two
 * begin at the same place the longer one counts; what overlaps an earlier one does not count. Text is bytes, one character each.
 */
export class Placeholders {
  readonly #placeholders: readonly string[];
  #compiled: Compiled | null = null;

  constructor(placeholders: readonly string[]) {
    this.#placeholders = placeholders.map((placeholder) => placeholder.toWellFormed());
  }

  /** For a text that comes in pieces. */
  scan(): PlaceholderScan {
    // Many sandboxes never send anything.
    this.#compiled ??= {
      automaton: new AhoCorasick(this.#placeholders.map(toBytes)),
      escapes: new Escapes(this.#placeholders),
    };
    return new PlaceholderScan(this.#compiled);
  }

  partsOf(text: string): readonly Part[] {
    return this.scan().push(text, true);
  }

  /** Indexes of all that are in the text. */
  allIn(text: string): readonly number[] {
    return [...new Set(this.partsOf(text).flatMap((part) => (part.kind === 'found' ? [part.index] : [])))];
  }
}
