import type { RestCallOutput } from '@svc/sdk';
import { useState } from 'react';
import { canAct, useOrganization } from '../../api/organization.ts';
import { useAction, useCall } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { DataTable, type Column } from '../../parts/DataTable.tsx';
import { TextField } from '../../parts/Field.tsx';
import { FormDialog } from '../../parts/FormDialog.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { RemoveButton } from '../../parts/RemoveButton.tsx';
import { Time } from '../../parts/Time.tsx';

type Registry = RestCallOutput<'registries.list'>[number];

/** Credentials for pulling private images. */
export function Registries() {
  const { role } = useOrganization();
  const [isMaking, setMaking] = useState(false);
  const { data, error } = useCall('registries.list', {});
  const mayChange = canAct(role, 'admin');
  return (
    <Panel
      title="Registries"
      hint="Passwords for private images"
      isFlush
      actions={
        mayChange ? (
          <Button icon="plus" onClick={() => setMaking(true)}>
            Set a password
          </Button>
        ) : null
      }
    >
      <DataTable
        label="Registries"
        columns={mayChange ? [...COLUMNS, ACTIONS] : COLUMNS}
        rows={data}
        keyOf={({ id }) => id}
        error={error}
        empty={<p className="hint none">No passwords: only public images can be pulled.</p>}
      />
      {isMaking ? <NewRegistry onClose={() => setMaking(false)} /> : null}
    </Panel>
  );
}

const COLUMNS: readonly Column<Registry>[] = [
  {
    title: 'Registry',
    look: 'main',
    render: ({ registry_host }) => <span className="mono">{registry_host}</span>,
  },
  { title: 'User', render: ({ username }) => username },
  { title: 'Changed', look: 'small', render: ({ updated_at }) => <Time at={updated_at} /> },
];
const ACTIONS: Column<Registry> = {
  title: 'Actions',
  look: 'end',
  render: (registry) => <Remove {...registry} />,
};

function Remove({ id, registry_host: host }: Registry) {
  const action = useAction('registries.remove');
  return (
    <RemoveButton
      label={`Forget the password for ${host}`}
      question={`Forget the password for ${host}?`}
      verb="Forget it"
      input={{ params: { id } }}
      action={action}
    >
      <p>Its private images can no longer be pulled.</p>
    </RemoveButton>
  );
}

function NewRegistry({ onClose }: { readonly onClose: () => void }) {
  const [host, setHost] = useState('');
  const [username, setUsername] = useState('');
  const [password, setPassword] = useState('');
  const put = useAction('registries.put', { onDone: onClose });
  const body = { registry_host: host.trim(), username: username.trim(), password };
  return (
    <FormDialog
      title="Password for a registry"
      action="Set it"
      isBusy={put.isPending}
      error={put.error}
      onSubmit={() => put.mutate({ body })}
      onClose={onClose}
    >
      <TextField
        label="Host"
        field="registry_host"
        placeholder="registry.example.com"
        required
        autoFocus
        value={host}
        onChange={setHost}
      />
      <TextField
        label="User"
        field="username"
        autoComplete="off"
        required
        value={username}
        onChange={setUsername}
      />
      <TextField
        label="Password or token"
        field="password"
        hint="Never shown again"
        type="password"
        autoComplete="off"
        required
        value={password}
        onChange={setPassword}
      />
    </FormDialog>
  );
}
