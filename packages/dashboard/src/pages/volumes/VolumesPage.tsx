import type { RestCallOutput } from '@svc/sdk';
import { useState } from 'react';
import { useOrganization } from '../../api/organization.ts';
import { useAction, useCall } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { DataTable, type Column } from '../../parts/DataTable.tsx';
import { EmptyState } from '../../parts/EmptyState.tsx';
import { TextField } from '../../parts/Field.tsx';
import { formatBytes } from '../../parts/format-amount.ts';
import { FormDialog } from '../../parts/FormDialog.tsx';
import { Page } from '../../parts/Page.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { RemoveButton } from '../../parts/RemoveButton.tsx';
import { Time } from '../../parts/Time.tsx';
import { Link } from '../../router/Link.tsx';

type Volume = RestCallOutput<'volumes.list'>[number];

const LIVE_MS = 5000;

/** Volumes: storage that outlives sandboxes. */
export function VolumesPage() {
  const [isMaking, setMaking] = useState(false);
  const { data, error } = useCall('volumes.list', {}, { everyMs: LIVE_MS });
  const make = (
    <Button look="primary" icon="plus" onClick={() => setMaking(true)}>
      New volume
    </Button>
  );
  return (
    <Page title="Volumes" hint="Files that outlive the sandboxes that use them" actions={make}>
      <Panel isFlush>
        <DataTable
          label="Volumes"
          columns={COLUMNS}
          rows={data}
          keyOf={({ id }) => id}
          error={error}
          empty={
            <EmptyState icon="disk" title="No volumes yet">
              <p>A sandbox mounts a volume at a path; what it writes there is kept.</p>
              {make}
            </EmptyState>
          }
        />
      </Panel>
      {isMaking ? <NewVolume onClose={() => setMaking(false)} /> : null}
    </Page>
  );
}

const COLUMNS: readonly Column<Volume>[] = [
  { title: 'Name', look: 'main', render: (volume) => <NameOf volume={volume} /> },
  {
    title: 'Used',
    look: 'end',
    render: ({ used_bytes }) => (used_bytes === null ? '–' : formatBytes(used_bytes)),
  },
  {
    title: 'Capacity',
    look: 'end',
    render: ({ capacity_bytes }) => (capacity_bytes === null ? 'no limit' : formatBytes(capacity_bytes)),
  },
  { title: 'Created', look: 'small', render: ({ created_at }) => <Time at={created_at} /> },
  { title: 'Actions', look: 'end', render: (volume) => <Remove volume={volume} /> },
];

function NameOf({ volume: { id, name, kind, status } }: { readonly volume: Volume }) {
  const { slug } = useOrganization();
  return (
    <>
      <Link href={`/orgs/${slug}/volumes/${id}`}>{name ?? 'host volume'}</Link>
      {kind === 'host' ? <span className="hint"> of the organization</span> : null}
      {status === 'deleting' ? <span className="hint"> is being deleted</span> : null}
    </>
  );
}

function Remove({ volume: { id, name, kind } }: { readonly volume: Volume }) {
  const action = useAction('volumes.remove');
  if (kind === 'host') return null;
  return (
    <RemoveButton
      label={`Delete ${name ?? id}`}
      question={`Delete ${name ?? id}?`}
      verb="Delete it"
      input={{ params: { id } }}
      action={action}
    >
      <p>All its files are deleted for good. A volume that a sandbox uses cannot be deleted.</p>
    </RemoveButton>
  );
}

function NewVolume({ onClose }: { readonly onClose: () => void }) {
  const [name, setName] = useState('');
  const [gib, setGib] = useState('');
  const make = useAction('volumes.create', { onDone: onClose });
  const submit = (): void =>
    make.mutate({ body: { name, ...(gib === '' ? {} : { capacity_gib: Number(gib) }) } });
  return (
    <FormDialog
      title="New volume"
      action="Create"
      isBusy={make.isPending}
      error={make.error}
      onSubmit={submit}
      onClose={onClose}
    >
      <TextField
        label="Name"
        field="name"
        hint="Lowercase letters, digits and hyphens"
        required
        autoFocus
        value={name}
        onChange={setName}
      />
      <TextField
        label="Capacity in GiB"
        field="capacity_gib"
        hint="Leave empty for no limit"
        type="number"
        min={1}
        value={gib}
        onChange={setGib}
      />
    </FormDialog>
  );
}
