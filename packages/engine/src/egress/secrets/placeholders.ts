import { AhoCorasick } from './aho-corasick.ts';
import { Escapes } from './escapes.ts';
import { toBytes } from './latin1.ts';
import { PlaceholderScan, type Compiled, type Part } from './placeholder-scan.ts';

/**
 * Finds placeholders in the data that a sandbox sends: in the raw text, and in the text with its escapes decoded (percent, JSON). Of two
 * that begin at the same place the longer one counts; overlaps with an earlier one are ignored. Text is bytes, one character each.
 */
export class Placeholders {
  readonly #placeholders: readonly string[];
  #compiled: Compiled | null = null;

  constructor(placeholders: readonly string[]) {
    this.#placeholders = placeholders.map((placeholder) => placeholder.toWellFormed());
  }

  /** A scan of a text that arrives in chunks. */
  scan(): PlaceholderScan {
    // Compiled on first use: many sandboxes never send anything.
    this.#compiled ??= {
      automaton: new AhoCorasick(this.#placeholders.map(toBytes)),
      escapes: new Escapes(this.#placeholders),
    };
    return new PlaceholderScan(this.#compiled);
  }

  partsOf(text: string): readonly Part[] {
    return this.scan().push(text, true);
  }

  /** Indexes of all placeholders in the text. */
  allIn(text: string): readonly number[] {
    return [...new Set(this.partsOf(text).flatMap((part) => (part.kind === 'found' ? [part.index] : [])))];
  }
}
