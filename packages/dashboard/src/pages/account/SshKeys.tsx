import type { RestCallOutput } from '@svc/sdk';
import { useState } from 'react';
import { useAction, useCall } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { DataTable, type Column } from '../../parts/DataTable.tsx';
import { TextField } from '../../parts/Field.tsx';
import { FormDialog } from '../../parts/FormDialog.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { RemoveButton } from '../../parts/RemoveButton.tsx';
import { Time } from '../../parts/Time.tsx';

type SshKey = RestCallOutput<'sshKeys.list'>[number];

/** Keys that open the sandboxes of the person's organizations over SSH. */
export function SshKeys() {
  const [isMaking, setMaking] = useState(false);
  const { data, error } = useCall('sshKeys.list', {});
  return (
    <Panel
      title="SSH keys"
      hint="For SSH into sandboxes of your organizations, if this server has an SSH gateway"
      isFlush
      actions={
        <Button icon="plus" onClick={() => setMaking(true)}>
          Add a key
        </Button>
      }
    >
      <DataTable
        label="SSH keys"
        columns={COLUMNS}
        rows={data}
        keyOf={({ id }) => id}
        error={error}
        empty={<p className="hint none">No SSH keys.</p>}
      />
      {isMaking ? <NewSshKey onClose={() => setMaking(false)} /> : null}
    </Panel>
  );
}

const COLUMNS: readonly Column<SshKey>[] = [
  { title: 'Name', look: 'main', render: ({ name }) => name },
  {
    title: 'Fingerprint',
    look: 'small',
    render: ({ fingerprint }) => <span className="mono">{fingerprint}</span>,
  },
  { title: 'Last used', look: 'small', render: ({ last_used_at }) => <Time at={last_used_at} /> },
  { title: 'Actions', look: 'end', render: (key) => <Remove {...key} /> },
];

function Remove({ id, name }: SshKey) {
  const action = useAction('sshKeys.remove');
  return (
    <RemoveButton
      label={`Remove ${name}`}
      question={`Remove ${name}?`}
      verb="Remove it"
      input={{ params: { id } }}
      action={action}
    >
      <p>The key is refused from then on; its sessions end within a minute.</p>
    </RemoveButton>
  );
}

function NewSshKey({ onClose }: { readonly onClose: () => void }) {
  const [name, setName] = useState('');
  const [key, setKey] = useState('');
  const make = useAction('sshKeys.create', { onDone: onClose });
  return (
    <FormDialog
      title="Add an SSH key"
      action="Add it"
      isBusy={make.isPending}
      error={make.error}
      onSubmit={() => make.mutate({ body: { name: name.trim(), public_key: key.trim() } })}
      onClose={onClose}
    >
      <TextField
        label="Name"
        field="name"
        placeholder="laptop"
        required
        autoFocus
        value={name}
        onChange={setName}
      />
      <TextField
        label="Public key"
        field="public_key"
        hint="The content of the .pub file, not the private key"
        placeholder="ssh-ed25519 AAAA…"
        required
        value={key}
        onChange={setKey}
      />
    </FormDialog>
  );
}
