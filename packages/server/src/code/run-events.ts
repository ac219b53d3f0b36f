import { StringDecoder } from 'node:string_decoder';
import type { CodeRunResult } from '@svc/contract';
import type { UnitException } from './unit-answer.ts';
import type { CodeResult, RunHow, RunListener } from './slot-request.ts';

/** What a caller has not read yet may be this much; what comes then is thrown away, because interpreters never wait. */
const MAX_UNREAD_LENGTH = 8 * 1024 * 1024;
const DROPPED_NOTE = '\n[output is missing here: it was not read in time]\n';

export interface RunEnd {
  readonly status: CodeResult['status'] | 'interrupted';
  readonly result: string | null;
  readonly exception: UnitException | null;
  readonly executionCount: number | null;
  /** Output is missing. */
  readonly truncated: boolean;
}

export type RunEvent =
  | { readonly kind: 'stdout' | 'stderr'; readonly text: string }
  | { readonly kind: 'result'; readonly result: CodeRunResult }
  | { readonly kind: 'end'; readonly end: RunEnd };

/**
 * Runs code and yields what it prints while it runs, and how it ended last. It begins at once, not with the first read.
 * @throws what `run` throws, after what was printed until then
 */
export function runEvents(run: (listener: RunListener) => Promise<CodeResult>): AsyncIterable<RunEvent> {
  const unread = new Unread();
  void follow(run, unread);
  return unread;
}

async function follow(run: (listener: RunListener) => Promise<CodeResult>, unread: Unread): Promise<void> {
  const decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') };
  let how: RunHow = {
    result: null,
    exception: null,
    executionCount: null,
    isInterrupted: false,
    isTruncated: false,
  };
  const flush = () => {
    for (const stream of ['stdout', 'stderr'] as const) unread.push(stream, decoders[stream].end());
  };
  const listener: RunListener = {
    stdout: (data) => unread.push('stdout', decoders.stdout.write(data)),
    stderr: (data) => unread.push('stderr', decoders.stderr.write(data)),
    result: (result) => {
      unread.push('stdout', decoders.stdout.end());
      unread.show(result);
    },
    note: (text) => {
      if (text === '') return;
      unread.push('stderr', decoders.stderr.end());
      unread.pushLine(text);
    },
    ended: (end) => {
      how = end;
    },
  };
  try {
    const { status } = await run(listener);
    flush();
    const { result, exception, executionCount, isInterrupted, isTruncated } = how;
    if (isTruncated) unread.truncate();
    unread.end({ status: isInterrupted ? 'interrupted' : status, result, exception, executionCount });
  } catch (error) {
    flush();
    unread.fail(error);
  }
}

/** Queue of unread events for one reader. */
class Unread implements AsyncIterable<RunEvent> {
  readonly #events: (
    | { readonly kind: 'stdout' | 'stderr'; text: string }
    | { readonly kind: 'result'; readonly result: CodeRunResult }
  )[] = [];
  /** Of its texts. Results have a bound of their own. */
  #length = 0;
  #isTruncated = false;
  #isAtLineStart = true;
  #end: (() => RunEnd) | undefined;
  #changed = Promise.withResolvers<void>();

  push(kind: 'stdout' | 'stderr', text: string): void {
    if (text === '') return;
    if (kind === 'stderr') this.#isAtLineStart = text.endsWith('\n');
    if (this.#length + text.length > MAX_UNREAD_LENGTH) {
      if (!this.#isDropping) this.#add('stderr', DROPPED_NOTE);
      this.#isDropping = true;
      this.#isTruncated = true;
      return;
    }
    this.#isDropping = false;
    this.#add(kind, text);
  }

  #isDropping = false;

  /** To stderr, on a line of its own. */
  pushLine(text: string): void {
    const isAtLineStart = this.#isAtLineStart;
    this.#isAtLineStart = true;
    this.#add('stderr', isAtLineStart ? text : `\n${text}`);
  }

  show(result: CodeRunResult): void {
    this.#events.push({ kind: 'result', result });
    this.#wake();
  }

  truncate(): void {
    this.#isTruncated = true;
  }

  end(end: Omit<RunEnd, 'truncated'>): void {
    this.#finish(() => ({ ...end, truncated: this.#isTruncated }));
  }

  fail(error: unknown): void {
    this.#finish(() => {
      throw error;
    });
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<RunEvent> {
    for (;;) {
      const next = this.#events.shift();
      if (next !== undefined) {
        if (next.kind !== 'result') this.#length -= next.text.length;
        yield next;
      } else if (this.#end !== undefined) return yield { kind: 'end', end: this.#end() };
      else await this.#changed.promise;
    }
  }

  #add(kind: 'stdout' | 'stderr', text: string): void {
    const last = this.#events.at(-1);
    // Few large events are cheaper than many small ones; the reader gets to see nothing later than it could.
    if (last?.kind === kind) last.text += text;
    else this.#events.push({ kind, text });
    this.#length += text.length;
    this.#wake();
  }

  #finish(end: () => RunEnd): void {
    this.#end = end;
    this.#wake();
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }
}
