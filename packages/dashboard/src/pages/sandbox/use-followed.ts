import type { Sandbox } from '@svc/sdk';
import { useEffect, useState } from 'react';
import { useSandbox } from './use-sandbox.ts';

const KEPT = 5000;

/**
 * What a stream of the sandbox has brought so far, the newest last. It begins anew when `follow` is another function, and ends with the
 * page that shows it.
 */
export function useFollowed<Entry>(
  id: string,
  follow: (sandbox: Sandbox, signal: AbortSignal) => AsyncIterable<Entry>,
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
          if (!left.signal.aborted) setEntries((known) => [...known.slice(1 - KEPT), entry]);
      } catch (failure) {
        if (!left.signal.aborted) setError(failure);
      }
    })();
    return () => left.abort();
  }, [sandbox, follow]);
  return { entries, error: error ?? unreached };
}
