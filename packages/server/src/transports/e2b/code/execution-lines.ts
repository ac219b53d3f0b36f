import type { CodeRunResult } from '@svc/contract';
import type { ServerEvent } from '@svc/contract/rest';
import { HeldOutput } from './held-output.ts';
import { toResultLine } from './result-fields.ts';

/** Output that is no part of a value is delayed by this much at most. */
const HOLD_MS = 50;
const KEEP_ALIVE_MS = 5000;

type Stream = 'stdout' | 'stderr';

interface RunEnd {
  readonly status: string;
  readonly result: string | null;
  readonly exception: { readonly name: string; readonly message: string; readonly traceback: string } | null;
}

/** The events of a run in E2B's lines of JSON. */
export async function* executionLines(events: AsyncIterable<ServerEvent>): AsyncGenerator<string, void> {
  const held: Held = { stdout: new HeldOutput(), stderr: new HeldOutput(), results: [] };
  function* flush(): Generator<string, void> {
    for (const stream of ['stdout', 'stderr'] as const) {
      const text = held[stream].take();
      if (text !== '') yield line({ type: stream, text, timestamp: new Date().toISOString() });
    }
  }
  const source = events[Symbol.asyncIterator]();
  try {
    for (let next = source.next(); ;) {
      // After the last value only its own text is held, until the end says what that is.
      const isHolding = held.results.length === 0 && !(held.stdout.isEmpty && held.stderr.isEmpty);
      const result = await within(next, isHolding ? HOLD_MS : KEEP_ALIVE_MS);
      if (result === undefined) {
        if (isHolding) yield* flush();
        else yield line({ type: 'keepalive' });
        continue;
      }
      if (result.done === true) break;
      const { event, data } = result.value;
      next = source.next();
      if (isStream(event)) {
        // The data of these events is of this shape.
        held[event].push((data as { readonly text: string }).text);
        continue;
      }
      const lines = linesOf(event, data, held);
      // What was printed before the last value stays held: the value is printed, too.
      if (held.results.length === 0 || event !== 'result') yield* flush();
      yield* lines;
    }
    yield* flush();
    yield line({ type: 'end_of_execution' });
  } finally {
    // Not awaited: a run that waits for its next event ends with its caller.
    source.return?.()?.catch(() => undefined);
  }
}

interface Held extends Readonly<Record<Stream, HeldOutput>> {
  /** The last value, and what came after it: its text is known at the end. */
  readonly results: CodeRunResult[];
}

function linesOf(event: string, data: unknown, held: Held): readonly string[] {
  if (event === 'result') {
    // The casts hold because the operation declares the data of its events.
    const result = data as CodeRunResult;
    if (!result.is_main_result && held.results.length === 0) return [line(toResultLine(result, null))];
    held.results.push(result);
    return [];
  }
  if (event === 'end') return linesOfEnd(data as RunEnd, held);
  if (event !== 'error') return [];
  const { error } = data as { readonly error: { readonly code: string; readonly message: string } };
  return [line({ type: 'error', name: error.code, value: error.message, traceback: '' })];
}

function linesOfEnd({ status, result, exception }: RunEnd, held: Held): readonly string[] {
  if (result !== null) held.stdout.cut(`${result}\n`);
  if (exception !== null) held.stderr.cut(`${exception.traceback.replace(/\n$/, '')}\n`);
  const results = held.results.map((each) => line(toResultLine(each, each.is_main_result ? result : null)));
  if (exception !== null) {
    const { name, message: value, traceback } = exception;
    return [...results, line({ type: 'error', name, value, traceback })];
  }
  if (status === 'success') return results;
  return [...results, line({ type: 'error', name: status, value: 'the code was ended', traceback: '' })];
}

function isStream(event: string): event is Stream {
  return event === 'stdout' || event === 'stderr';
}

/** One line; none of them is empty, which clients could not read. */
export function line(value: object): string {
  return `${JSON.stringify(value)}\n`;
}

/** Undefined after this time; the work can be awaited again. */
async function within<T>(work: Promise<T>, milliseconds: number): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), milliseconds);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}
