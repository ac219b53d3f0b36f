import type { CodeRunResult } from '@svc/contract';
import type { ServerEvent } from '@svc/contract/rest';
import { HeldOutput } from './held-output.ts';
import { printedText, toResultLine } from './result-fields.ts';

/** Output that is no part of a value is delayed by this much at most. */
const HOLD_MS = 50;
const KEEP_ALIVE_MS = 5000;

type Stream = 'stdout' | 'stderr';

interface RunEnd {
  readonly status: string;
  readonly exception: { readonly name: string; readonly message: string; readonly traceback: string } | null;
}

/** The events of a run in E2B's lines of JSON. */
export async function* executionLines(events: AsyncIterable<ServerEvent>): AsyncGenerator<string, void> {
  const held = { stdout: new HeldOutput(), stderr: new HeldOutput() };
  function* flush(): Generator<string, void> {
    for (const stream of ['stdout', 'stderr'] as const) {
      const text = held[stream].take();
      if (text !== '') yield line({ type: stream, text, timestamp: new Date().toISOString() });
    }
  }
  const source = events[Symbol.asyncIterator]();
  try {
    for (let next = source.next(); ;) {
      const isHolding = !held.stdout.isEmpty || !held.stderr.isEmpty;
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
      yield* flush();
      yield* lines;
    }
    yield* flush();
    yield line({ type: 'end_of_execution' });
  } finally {
    // Not awaited: a run that waits for its next event ends with its caller.
    source.return?.()?.catch(() => undefined);
  }
}

function linesOf(
  event: string,
  data: unknown,
  held: Readonly<Record<Stream, HeldOutput>>,
): readonly string[] {
  if (event === 'result') {
    // The casts hold because the operation declares the data of its events.
    const result = data as CodeRunResult;
    held.stdout.cut(printedText(result));
    return [line(toResultLine(result))];
  }
  if (event === 'end') {
    const { status, exception } = data as RunEnd;
    if (exception !== null) {
      const { name, message: value, traceback } = exception;
      held.stderr.cut(traceback.endsWith('\n') ? traceback : `${traceback}\n`);
      return [line({ type: 'error', name, value, traceback })];
    }
    return status === 'success'
      ? []
      : [line({ type: 'error', name: status, value: 'the code was ended', traceback: '' })];
  }
  if (event !== 'error') return [];
  const { error } = data as { readonly error: { readonly code: string; readonly message: string } };
  return [line({ type: 'error', name: error.code, value: error.message, traceback: '' })];
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
