import type { RestCallOutput } from '@svc/sdk';
import { usePages } from '../../api/use-call.ts';
import { DataTable, type Column } from '../../parts/DataTable.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { Time } from '../../parts/Time.tsx';

type Operation = RestCallOutput<'snapshots.listOperations'>['data'][number];

const LIVE_MS = 3000;

/** Snapshots that are being made, and those that failed; renders nothing without any. */
export function SnapshotOperations() {
  const query = { limit: 20, exclude_redundant: true };
  const pages = usePages('snapshots.listOperations', { query }, { everyMs: LIVE_MS });
  if (pages.items === undefined || pages.items.length === 0) return null;
  return (
    <Panel title="In progress or failed" isFlush>
      <DataTable
        label="Snapshots in progress or failed"
        columns={COLUMNS}
        rows={pages.items}
        keyOf={({ id }) => id}
        error={pages.error}
        more={pages}
        empty={null}
      />
    </Panel>
  );
}

const COLUMNS: readonly Column<Operation>[] = [
  { title: 'Name', look: 'main', render: ({ snapshot_name: name }) => name },
  { title: 'Sandbox', look: 'small', render: ({ sandbox_name: name }) => name },
  {
    title: 'State',
    render: ({ status, error }) =>
      error === null ? (
        <span className="status move">{status.replace('_', ' ')}</span>
      ) : (
        <>
          <span className="status bad">failed</span> {error.message}
        </>
      ),
  },
  { title: 'Requested', look: 'small', render: ({ created_at: at }) => <Time at={at} /> },
];
