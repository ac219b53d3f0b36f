import type { CodeRunResult } from '@svc/contract';
import { runEvents, type RunEnd } from '../code/run-events.ts';
import type { CodeRunner } from '../code/code-runner.ts';
import type { Language } from '../code/languages.ts';

/** All events of a run for its caller, in order. */
export interface ListenedRun extends RunEnd {
  readonly stdout: string;
  readonly stderr: string;
  readonly results: readonly CodeRunResult[];
  /** stdout and results in order: texts, and the MIME types of results. */
  readonly order: readonly string[];
}

export async function runAndListen(
  runner: CodeRunner,
  request: { readonly sandboxId: string; readonly language: Language; readonly code: string },
  timeoutMs = 60_000,
): Promise<ListenedRun> {
  const { signal } = new AbortController();
  const output = { stdout: '', stderr: '' };
  const results: CodeRunResult[] = [];
  const order: string[] = [];
  for await (const event of runEvents((listener) =>
    runner.run({ ...request, timeoutMs, listener }, signal),
  )) {
    if (event.kind === 'end') return { ...event.end, ...output, results, order };
    if (event.kind === 'result') {
      results.push(event.result);
      order.push(typesOf(event.result));
    } else {
      output[event.kind] += event.text;
      if (event.kind === 'stdout') addText(order, event.text);
    }
  }
  throw new Error('the run ended without an end');
}

/** The MIME types of a result, as one text. */
function typesOf({ data }: CodeRunResult): string {
  return Object.keys(data).toSorted().join(' ');
}

function addText(order: string[], text: string): void {
  const last = order.at(-1);
  if (last?.endsWith('\n') === true) order[order.length - 1] = last + text;
  else order.push(text);
}
