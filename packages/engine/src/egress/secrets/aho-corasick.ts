/** A node of the trie; the root is the state before any input. */
export type State = number;

export const ROOT: State = 0;
const NONE = -1;

/**
 * Finds every occurrence of several patterns in one pass (Aho and Corasick, 1975): the state is the longest suffix of the input
 * that is a prefix of a pattern. Patterns are bytes, one character each (latin1). Amortized constant time per byte.
 */
export class AhoCorasick {
  /** Length of the longest pattern. */
  readonly maxDepth: number;
  readonly #byte: Uint8Array;
  readonly #firstChild: Int32Array;
  readonly #sibling: Int32Array;
  readonly #depth: Int32Array;
  readonly #pattern: Int32Array;
  /** The longest proper suffix that is a prefix of a pattern. */
  readonly #fail: Int32Array;
  /** The longest proper suffix that is a pattern. */
  readonly #shorter: Int32Array;
  /** The longest suffix, itself included, that a longer pattern continues. */
  readonly #open: Int32Array;
  readonly #fromRoot = new Int32Array(256);
  #size = 1;

  constructor(patterns: readonly string[]) {
    const capacity = patterns.reduce((sum, { length }) => sum + length, 1);
    this.#byte = new Uint8Array(capacity);
    this.#firstChild = new Int32Array(capacity).fill(NONE);
    this.#sibling = new Int32Array(capacity).fill(NONE);
    this.#depth = new Int32Array(capacity);
    this.#pattern = new Int32Array(capacity).fill(NONE);
    this.#fail = new Int32Array(capacity);
    this.#shorter = new Int32Array(capacity).fill(NONE);
    this.#open = new Int32Array(capacity);
    this.maxDepth = patterns.reduce((longest, { length }) => Math.max(longest, length), 0);
    for (const [index, pattern] of patterns.entries()) if (pattern !== '') this.#insert(pattern, index);
    this.#link();
  }

  next(state: State, byte: number): State {
    let from = state;
    while (from !== ROOT) {
      const child = this.#childOf(from, byte);
      if (child !== NONE) return child;
      from = this.#fail[from] ?? ROOT;
    }
    return this.#fromRoot[byte] ?? ROOT;
  }

  depthOf(state: State): number {
    return this.#depth[state] ?? 0;
  }

  /** The longest suffix of the state that further bytes can complete to a pattern, or to a longer one. */
  openOf(state: State): State {
    return this.#open[state] ?? ROOT;
  }

  failOf(state: State): State {
    return this.#fail[state] ?? ROOT;
  }

  /** Calls back with each pattern that ends here, the longest first. */
  ending(state: State, found: (index: number, length: number) => void): void {
    const longest = this.#pattern[state] === NONE ? this.#shorter[state] : state;
    for (let at = longest ?? NONE; at !== NONE; at = this.#shorter[at] ?? NONE)
      found(this.#pattern[at] ?? NONE, this.depthOf(at));
  }

  #insert(pattern: string, index: number): void {
    let node = ROOT;
    for (let at = 0; at < pattern.length; at++) {
      const byte = pattern.charCodeAt(at);
      const child = this.#childOf(node, byte);
      node = child === NONE ? this.#add(node, byte) : child;
    }
    if (this.#pattern[node] === NONE) this.#pattern[node] = index;
  }

  #add(parent: State, byte: number): State {
    const node = this.#size++;
    this.#byte[node] = byte;
    this.#depth[node] = this.depthOf(parent) + 1;
    this.#sibling[node] = this.#firstChild[parent] ?? NONE;
    this.#firstChild[parent] = node;
    if (parent === ROOT) this.#fromRoot[byte] = node;
    return node;
  }

  /** Takes at most as many steps as patterns diverge here. */
  #childOf(node: State, byte: number): State {
    let child = this.#firstChild[node] ?? NONE;
    while (child !== NONE && this.#byte[child] !== byte) child = this.#sibling[child] ?? NONE;
    return child;
  }

  /** Breadth first: the failure link of a node leads to a shorter one, whose links are set already. */
  #link(): void {
    const queue = [ROOT];
    for (const node of queue) {
      const fail = this.failOf(node);
      this.#shorter[node] =
        node === ROOT ? NONE : this.#pattern[fail] === NONE ? (this.#shorter[fail] ?? NONE) : fail;
      this.#open[node] = this.#firstChild[node] === NONE ? this.openOf(fail) : node;
      for (let child = this.#firstChild[node] ?? NONE; child !== NONE; child = this.#sibling[child] ?? NONE) {
        this.#fail[child] = node === ROOT ? ROOT : this.next(fail, this.#byte[child] ?? 0);
        queue.push(child);
      }
    }
  }
}
