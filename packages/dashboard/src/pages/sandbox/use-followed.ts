import type { Sandbox } from '@svc/sdk';
import { useEffect, useState } from 'react';
import { keepLatest } from './keep-latest.ts';
import { useSandbox } from './use-sandbox.ts';

/**
 * The latest entries of a stream of the sandbox, newest last. It restarts when `follow` changes, and ends when the component is
 * unmounted.
 */
export function useFollowed<Entry>(
  id: string,
  follow: (sandbox: Sandbox, signal: AbortSignal) => AsyncIterable<Entry>,
  lengthOf: (entry: Entry) => number = short,
): { readonly entries: readonly Entry[]; readonly error: unknown } {
  const { data: sandbox, error: unreached } = useSandbox(id);
  const [entries, setEntries] = useState<readonly Entry[]>([]);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    if (sandbox === undefined) return undefined;
    const left = new AbortController();
    setEntries([]);
    setError(null);
    void (async () => {
      try {
        for await (const entry of follow(sandbox, left.signal))
          if (!left.signal.aborted) setEntries((known) => keepLatest(known, entry, lengthOf));
      } catch (failure) {
        if (!left.signal.aborted) setError(failure);
      }
    })();
    return () => left.abort();
  }, [sandbox, follow, lengthOf]);
  return { entries, error: error ?? unreached };
}

function short(): number {
  return 0;
}
