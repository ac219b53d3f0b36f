import type { LogEntry, Sandbox } from '@svc/sdk';
import { useCallback, useEffect, useRef, useState } from 'react';
import { CheckField } from '../../parts/Field.tsx';
import { EmptyState } from '../../parts/EmptyState.tsx';
import { Failure } from '../../parts/Failure.tsx';
import { inFull } from '../../parts/format-time.ts';
import { Panel } from '../../parts/Panel.tsx';
import type { SandboxRecord } from './sandbox-record.ts';
import { useFollowed } from './use-followed.ts';

const TAIL = 500;
const SOURCES = ['stdout', 'stderr', 'output'] as const;

/** The log of the sandbox, followed live. */
export function LogsView({ sandbox }: { readonly sandbox: SandboxRecord }) {
  const [hasSystem, setSystem] = useState(false);
  const isRunning = sandbox.status === 'running';
  const follow = useCallback(
    (from: Sandbox, signal: AbortSignal) => {
      const sources = hasSystem ? [...SOURCES, 'system' as const] : SOURCES;
      return from.logs({ follow: isRunning, sources, tail: TAIL, signal });
    },
    [isRunning, hasSystem],
  );
  const { entries, error } = useFollowed(sandbox.id, follow, lengthOf);
  const list = useRef<HTMLOListElement>(null);
  const isAtEnd = useRef(true);
  useEffect(() => {
    if (isAtEnd.current) list.current?.scrollTo({ top: list.current.scrollHeight });
  }, [entries]);
  const noteScroll = (): void => {
    const element = list.current;
    if (element !== null)
      isAtEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < 40;
  };
  return (
    <Panel
      title="Log"
      hint="Newest at the end, updated live"
      isFlush
      actions={<CheckField label="Messages from svc" checked={hasSystem} onChange={setSystem} />}
    >
      {error === null ? null : <Failure error={error} />}
      {entries.length === 0 ? (
        <EmptyState icon="list" title="No output yet">
          <p>Output of the main command appears here.</p>
        </EmptyState>
      ) : (
        <ol className="log" ref={list} onScroll={noteScroll} tabIndex={0} aria-label="Log">
          {entries.map(({ cursor, source, text, time }) => (
            <li key={cursor} className={source}>
              <time dateTime={time} title={`${inFull(time)}\n${time}`}>
                {new Date(time).toLocaleTimeString()}
              </time>
              <span>{text.replace(/\n$/, '')}</span>
            </li>
          ))}
        </ol>
      )}
    </Panel>
  );
}

function lengthOf({ text }: LogEntry): number {
  return text.length;
}
