import type { CodeRunResult } from '@svc/contract';
import type { ServerEvent } from '@svc/contract/rest';
import { HeldOutput } from './held-output.ts';
import { toResultLine } from './result-fields.ts';

/** Output that is no part of a value is delayed by this much at most. */
const HOLD_MS = 50;
const KEEP_ALIVE_MS = 5000;

interface RunEnd {
  readonly status: string;
  readonly result: string | null;
  readonly exception: { readonly name: string; readonly message: string; readonly traceback: string } | null;
  readonly execution_count: number | null;
}

/** The events of a run in E2B's lines of JSON. */
export async function* executionLines(events: AsyncIterable<ServerEvent>): AsyncGenerator<string, void> {
  const held: Held = { stderr: new HeldOutput(), results: [] };
  function* flush(): Generator<string, void> {
    const text = held.stderr.take();
    if (text !== '') yield outputLine('stderr', text);
  }
  const source = events[Symbol.asyncIterator]();
  try {
    for (let next = source.next(); ;) {
      const isHolding = !held.stderr.isEmpty;
      const result = await within(next, isHolding ? HOLD_MS : KEEP_ALIVE_MS);
      if (result === undefined) {
        if (isHolding) yield* flush();
        else yield line({ type: 'keepalive' });
        continue;
      }
      if (result.done === true) break;
      const { event, data } = result.value;
      next = source.next();
      if (event === 'stdout') yield outputLine(event, textOf(data));
      else if (event === 'stderr') held.stderr.push(textOf(data));
      else {
        const lines = linesOf(event, data, held);
        yield* flush();
        yield* lines;
      }
    }
    yield* flush();
    yield line({ type: 'end_of_execution' });
  } finally {
    // Not awaited: a run that waits for its next event ends with its caller.
    source.return?.()?.catch(() => undefined);
  }
}

interface Held {
  /** The traceback of an exception is at its end. */
  readonly stderr: HeldOutput;
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

function linesOfEnd(
  { status, result, exception, execution_count: count }: RunEnd,
  held: Held,
): readonly string[] {
  if (exception !== null) held.stderr.cut(`${exception.traceback.replace(/\n$/, '')}\n`);
  const results = held.results.map((each) => line(toResultLine(each, each.is_main_result ? result : null)));
  if (count !== null) results.unshift(line({ type: 'number_of_executions', execution_count: count }));
  if (exception !== null) {
    const { name, message: value, traceback } = exception;
    return [...results, line({ type: 'error', name, value, traceback })];
  }
  if (status === 'success') return results;
  return [...results, line({ type: 'error', name: status, value: 'the code was ended', traceback: '' })];
}

function outputLine(type: 'stdout' | 'stderr', text: string): string {
  return line({ type, text, timestamp: new Date().toISOString() });
}

/** Of an event of output, whose data is of this shape. */
function textOf(data: unknown): string {
  return (data as { readonly text: string }).text;
}

/** One line; none of them is empty, which clients could not read. */
function line(value: object): string {
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
