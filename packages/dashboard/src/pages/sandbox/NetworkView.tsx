import type { NetworkDecision, Sandbox } from '@svc/sdk';
import { useCallback, useMemo, useState } from 'react';
import { DataTable, type Column } from '../../parts/DataTable.tsx';
import { EmptyState } from '../../parts/EmptyState.tsx';
import { Failure } from '../../parts/Failure.tsx';
import { CheckField } from '../../parts/Field.tsx';
import { formatNumber } from '../../parts/format-amount.ts';
import { Panel } from '../../parts/Panel.tsx';
import { Time } from '../../parts/Time.tsx';
import { ExplainPanel } from './ExplainPanel.tsx';
import { keyOfDecision, latestDecisions } from './latest-decisions.ts';
import type { SandboxRecord } from './sandbox-record.ts';
import { useFollowed } from './use-followed.ts';

const SHOWN = 200;

/** The network decisions of the sandbox with their reasons, followed live. */
export function NetworkView({ sandbox }: { readonly sandbox: SandboxRecord }) {
  const [onlyDenied, setOnlyDenied] = useState(false);
  const isRunning = sandbox.status === 'running';
  const follow = useCallback(
    (from: Sandbox, signal: AbortSignal) =>
      from.network.log({ follow: isRunning, signal, ...(onlyDenied ? { verdict: 'deny' } : {}) }),
    [isRunning, onlyDenied],
  );
  const { entries, error } = useFollowed(sandbox.id, follow);
  const rows = useMemo(() => latestDecisions(entries).slice(0, SHOWN), [entries]);
  return (
    <>
      <Panel
        title="Network decisions"
        hint="Denied connections and samples of allowed ones, newest first, updated live"
        isFlush
        actions={<CheckField label="Only denied" checked={onlyDenied} onChange={setOnlyDenied} />}
      >
        {error === null ? null : <Failure error={error} />}
        <DataTable
          label="Network decisions"
          columns={COLUMNS}
          rows={rows}
          keyOf={keyOfDecision}
          empty={
            <EmptyState icon="shield" title={onlyDenied ? 'Nothing was denied' : 'No decisions yet'}>
              <p>Name lookups and connections of the sandbox appear here, allowed or denied.</p>
            </EmptyState>
          }
        />
      </Panel>
      <ExplainPanel sandbox={sandbox} />
    </>
  );
}

const COLUMNS: readonly Column<NetworkDecision>[] = [
  {
    title: 'Verdict',
    render: ({ verdict }) => (
      <span className={verdict === 'allow' ? 'status good' : 'status bad'}>
        {verdict === 'allow' ? 'allowed' : 'denied'}
      </span>
    ),
  },
  {
    title: 'Destination',
    look: 'main',
    render: ({ host, address, port, kind }) => (
      <>
        <span className="mono">
          {host ?? address ?? '–'}
          {port === null ? '' : `:${port}`}
        </span>{' '}
        <span className="hint">{kind}</span>
      </>
    ),
  },
  { title: 'Reason', render: (decision) => <Reason {...decision} /> },
  { title: 'Count', look: 'end', render: ({ count }) => formatNumber(count) },
  { title: 'Last seen', look: 'small', render: ({ ts }) => <Time at={ts} /> },
];

function Reason({ reason, secret }: NetworkDecision) {
  return (
    <>
      {reason}
      {secret === null ? null : (
        <span className="hint block">
          {secret.method} {secret.path}, {secret.env_vars.join(' and ')} ({secret.action})
        </span>
      )}
    </>
  );
}
