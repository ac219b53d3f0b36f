import { useEffect, useState } from 'react';
import { ago, inFull } from './format-time.ts';

const TICK_MS = 10_000;

/** How long ago, in the viewer's own time; the whole time, and UTC, on hover. */
export function Time({ at }: { readonly at: string | null }) {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  if (at === null) return <span className="hint">never</span>;
  return (
    <time dateTime={at} title={`${inFull(at)}\n${at.replace('T', ' ').replace(/(\.\d+)?Z$/, '')} UTC`}>
      {ago(at, now)}
    </time>
  );
}
