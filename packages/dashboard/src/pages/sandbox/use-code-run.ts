import { Sandbox, SvcError, type CodeRunResult } from '@svc/sdk';
import { useEffect, useRef, useState } from 'react';
import { useClient } from '../../api/organization.ts';

/** Output and results of the code, in order. */
export type Shown = {
  /** From 1, in that order. */
  readonly number: number;
} & (
  | { readonly kind: 'stdout' | 'stderr'; readonly text: string }
  | { readonly kind: 'result'; readonly result: CodeRunResult }
);

export interface CodeRun {
  readonly isRunning: boolean;
  readonly shown: readonly Shown[];
  /** How it ended, in words; null: it still runs. */
  readonly end: string | null;
  /** Why it could not be run. */
  readonly error: unknown;
  readonly start: (code: string, language: 'python' | 'javascript') => Promise<void>;
  readonly interrupt: () => void;
}

const MAX_TEXT = 200_000;
const MAX_SHOWN = 1000;
const ENDS = {
  success: 'Finished.',
  error: 'Ended with an exception.',
  timeout: 'Timed out and was interrupted.',
  interrupted: 'Interrupted.',
} as const;

/** One run at a time; it is interrupted when its page is left. */
export function useCodeRun(id: string): CodeRun {
  const client = useClient();
  const [shown, setShown] = useState<readonly Shown[]>([]);
  const [end, setEnd] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isRunning, setRunning] = useState(false);
  const running = useRef<AbortController>(null);
  useEffect(() => () => running.current?.abort(), []);
  const start: CodeRun['start'] = async (code, language) => {
    const stop = new AbortController();
    running.current = stop;
    setShown([]);
    setEnd(null);
    setError(null);
    setRunning(true);
    try {
      const sandbox = await Sandbox.connect(id, { client, signal: stop.signal });
      const { status } = await sandbox.runCode(code, {
        language,
        signal: stop.signal,
        onStdout: (text) => setShown((before) => addText(before, 'stdout', text)),
        onStderr: (text) => setShown((before) => addText(before, 'stderr', text)),
        onResult: (result) =>
          setShown((before) => [...before, { kind: 'result', result, number: numberAfter(before) }]),
      });
      setEnd(ENDS[status]);
    } catch (failure) {
      if (SvcError.is(failure, 'aborted')) setEnd(ENDS.interrupted);
      else setError(failure);
    }
    setRunning(false);
  };
  return { isRunning, shown, end, error, start, interrupt: () => running.current?.abort() };
}

/** Appends output to that of the same stream; the oldest output is dropped beyond the limits. */
function addText(before: readonly Shown[], kind: 'stdout' | 'stderr', text: string): readonly Shown[] {
  const last = before.at(-1);
  if (last?.kind === kind)
    return [...before.slice(0, -1), { ...last, text: (last.text + text).slice(-MAX_TEXT) }];
  const added = { kind, text: text.slice(-MAX_TEXT), number: numberAfter(before) };
  return [...before.slice(1 - MAX_SHOWN), added];
}

function numberAfter(before: readonly Shown[]): number {
  return (before.at(-1)?.number ?? 0) + 1;
}
