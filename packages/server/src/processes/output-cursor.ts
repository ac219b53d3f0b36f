import type { DetachedEvent } from '@svc/contract';

export type OutputSelection = 'stdout' | 'stderr' | 'output';

/** The position of a reader of output: the next byte of each stream that it reads. Its text is the id of an event. */
export class OutputCursor {
  readonly #selection: OutputSelection;
  readonly #next = { stdout: 0, stderr: 0 };

  constructor(selection: OutputSelection, text: string | undefined) {
    this.#selection = selection;
    const numbers = (text ?? '').split('-').map(Number);
    const [first = 0, second = 0] = numbers;
    if (selection === 'stderr') this.#next.stderr = first;
    else Object.assign(this.#next, { stdout: first, stderr: selection === 'output' ? second : 0 });
  }

  /** `N` for one stream, `N-M` for both; a cursor of the other form does not fit this selection. */
  static isFor(selection: OutputSelection, text: string): boolean {
    return selection === 'output' ? /^\d{1,15}-\d{1,15}$|^0$/.test(text) : /^\d{1,15}$/.test(text);
  }

  get streams(): readonly ('stdout' | 'stderr')[] {
    return this.#selection === 'output' ? ['stdout', 'stderr'] : [this.#selection];
  }

  /** The offsets for the request to the sandbox. */
  get offsets(): { readonly stdout?: number; readonly stderr?: number } {
    return Object.fromEntries(this.streams.map((stream) => [stream, this.#next[stream]]));
  }

  nextOf(stream: 'stdout' | 'stderr'): number {
    return this.#next[stream];
  }

  pass(event: Exclude<DetachedEvent, { type: 'end' }>): void {
    this.#next[event.stream] = event.type === 'dropped' ? event.to : event.offset + event.data.length;
  }

  toString(): string {
    return this.streams.map((stream) => this.#next[stream]).join('-');
  }
}
