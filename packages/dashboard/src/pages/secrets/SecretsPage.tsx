import type { RestCallOutput } from '@svc/sdk';
import { useState } from 'react';
import { canAct, useOrganization } from '../../api/organization.ts';
import { useAction, useCall } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { DataTable, type Column } from '../../parts/DataTable.tsx';
import { EmptyState } from '../../parts/EmptyState.tsx';
import { TextField } from '../../parts/Field.tsx';
import { FormDialog } from '../../parts/FormDialog.tsx';
import { Page } from '../../parts/Page.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { RemoveButton } from '../../parts/RemoveButton.tsx';
import { Time } from '../../parts/Time.tsx';
import { readHosts, spellHost } from './hosts.ts';
import { Registries } from './Registries.tsx';

type Secret = RestCallOutput<'secrets.list'>[number];

/** Secrets that sandboxes use and never hold, and credentials for registries. */
export function SecretsPage() {
  const { role } = useOrganization();
  const [isMaking, setMaking] = useState(false);
  const { data, error } = useCall('secrets.list', {});
  const mayChange = canAct(role, 'admin');
  const make = mayChange ? (
    <Button look="primary" icon="plus" onClick={() => setMaking(true)}>
      Set a secret
    </Button>
  ) : null;
  return (
    <Page
      title="Secrets"
      hint="Sandboxes see a placeholder. Requests to the hosts listed here get the value on their way out."
      actions={make}
    >
      <Panel isFlush>
        <DataTable
          label="Secrets"
          columns={mayChange ? [...COLUMNS, ACTIONS] : COLUMNS}
          rows={data}
          keyOf={({ name }) => name}
          error={error}
          empty={
            <EmptyState icon="shield" title="No secrets yet">
              <p>Untrusted code can use a credential here without ever reading it.</p>
              {make}
            </EmptyState>
          }
        />
      </Panel>
      <Registries />
      {isMaking ? <NewSecret onClose={() => setMaking(false)} /> : null}
    </Page>
  );
}

const COLUMNS: readonly Column<Secret>[] = [
  { title: 'Name', look: 'main', render: ({ name }) => <span className="mono">{name}</span> },
  {
    title: 'Hosts',
    render: ({ allowed_hosts }) => <span className="mono">{allowed_hosts.map(spellHost).join(', ')}</span>,
  },
  { title: 'Changed', look: 'small', render: ({ updated_at }) => <Time at={updated_at} /> },
];
const ACTIONS: Column<Secret> = {
  title: 'Actions',
  look: 'end',
  render: (secret) => <Remove {...secret} />,
};

function Remove({ name }: Secret) {
  const action = useAction('secrets.remove');
  return (
    <RemoveButton
      label={`Forget ${name}`}
      question={`Forget ${name}?`}
      verb="Forget it"
      input={{ params: { name } }}
      action={action}
    >
      <p>The value cannot be shown again. A secret that a sandbox uses cannot be deleted.</p>
    </RemoveButton>
  );
}

function NewSecret({ onClose }: { readonly onClose: () => void }) {
  const [name, setName] = useState('');
  const [value, setValue] = useState('');
  const [hosts, setHosts] = useState('');
  const put = useAction('secrets.put', { onDone: onClose });
  const submit = (): void =>
    put.mutate({ params: { name: name.trim() }, body: { value, allowed_hosts: readHosts(hosts) } });
  return (
    <FormDialog
      title="Set a secret"
      action="Set it"
      isBusy={put.isPending}
      error={put.error}
      onSubmit={submit}
      onClose={onClose}
    >
      <TextField
        label="Name"
        field="name"
        hint="An existing secret gets the new value, in running sandboxes too"
        required
        autoFocus
        value={name}
        onChange={setName}
      />
      <TextField
        label="Value"
        field="value"
        hint="Never shown again"
        type="password"
        autoComplete="off"
        required
        value={value}
        onChange={setValue}
      />
      <TextField
        label="Hosts"
        field="allowed_hosts"
        hint="Hosts that get the value, separated by commas: api.example.com, *.example.org"
        required
        value={hosts}
        onChange={setHosts}
      />
    </FormDialog>
  );
}
