import type { RestCallOutput } from '@svc/sdk';
import { useState } from 'react';
import { useOrganization } from '../../api/organization.ts';
import { useAction, usePages } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { DataTable, type Column } from '../../parts/DataTable.tsx';
import { EmptyState } from '../../parts/EmptyState.tsx';
import { formatBytes } from '../../parts/format-amount.ts';
import { Page } from '../../parts/Page.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { RemoveButton } from '../../parts/RemoveButton.tsx';
import { Time } from '../../parts/Time.tsx';
import { Link } from '../../router/Link.tsx';
import { Labels } from '../sandboxes/Labels.tsx';
import { NewSnapshot } from './NewSnapshot.tsx';
import { SnapshotOperations } from './SnapshotOperations.tsx';

type Snapshot = RestCallOutput<'snapshots.list'>['data'][number];

const LIVE_MS = 3000;

/** Saved disks from which new sandboxes can be started. */
export function SnapshotsPage() {
  const [isMaking, setMaking] = useState(false);
  const pages = usePages('snapshots.list', { query: { limit: 50 } }, { everyMs: LIVE_MS });
  const make = (
    <Button look="primary" icon="plus" onClick={() => setMaking(true)}>
      New snapshot
    </Button>
  );
  return (
    <Page title="Snapshots" hint="Saved disks of sandboxes, to start new sandboxes from" actions={make}>
      <Panel isFlush>
        <DataTable
          label="Snapshots"
          columns={COLUMNS}
          rows={pages.items}
          keyOf={({ id }) => id}
          error={pages.error}
          more={pages}
          empty={
            <EmptyState icon="camera" title="No snapshots yet">
              <p>A snapshot keeps the disk of a sandbox as it is now. The sandbox goes on.</p>
              {make}
            </EmptyState>
          }
        />
      </Panel>
      <SnapshotOperations />
      {isMaking ? <NewSnapshot onClose={() => setMaking(false)} /> : null}
    </Page>
  );
}

const COLUMNS: readonly Column<Snapshot>[] = [
  {
    title: 'Name',
    look: 'main',
    render: ({ name, labels }) => (
      <>
        {name} <Labels labels={labels} />
      </>
    ),
  },
  { title: 'Size', look: 'end', render: ({ size_bytes }) => formatBytes(size_bytes) },
  { title: 'Created', look: 'small', render: ({ created_at }) => <Time at={created_at} /> },
  { title: 'Actions', look: 'end', render: (snapshot) => <SnapshotActions snapshot={snapshot} /> },
];

function SnapshotActions({ snapshot: { id, name } }: { readonly snapshot: Snapshot }) {
  const { slug } = useOrganization();
  const action = useAction('snapshots.remove');
  return (
    <div className="actions">
      <Link
        className="button"
        aria-label={`Start a sandbox from ${name}`}
        href={`/orgs/${slug}/sandboxes/new?snapshot=${encodeURIComponent(name)}`}
      >
        Start
      </Link>
      <RemoveButton
        label={`Delete ${name}`}
        question={`Delete ${name}?`}
        verb="Delete it"
        input={{ params: { snapshot_id: id } }}
        action={action}
      >
        <p>Sandboxes that were started from it keep their disks. This cannot be undone.</p>
      </RemoveButton>
    </div>
  );
}
