import type { RestCallOutput } from '@svc/sdk';
import { useState } from 'react';
import { useAction, useCall } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { DataTable, type Column } from '../../parts/DataTable.tsx';
import { ExpiryField, expiryOf } from '../../parts/ExpiryField.tsx';
import { TextField } from '../../parts/Field.tsx';
import { FormDialog } from '../../parts/FormDialog.tsx';
import { OnceDialog } from '../../parts/OnceDialog.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { RemoveButton } from '../../parts/RemoveButton.tsx';
import { Time } from '../../parts/Time.tsx';

type Token = RestCallOutput<'tokens.list'>[number];

/** Personal access tokens: programs act as the person with one. */
export function Tokens() {
  const [isMaking, setMaking] = useState(false);
  const { data, error } = useCall('tokens.list', {});
  return (
    <Panel
      title="Personal access tokens"
      hint="Programs act as you with one, in each of your organizations"
      isFlush
      actions={
        <Button icon="plus" onClick={() => setMaking(true)}>
          New token
        </Button>
      }
    >
      <DataTable
        label="Personal access tokens"
        columns={COLUMNS}
        rows={data}
        keyOf={({ id }) => id}
        error={error}
        empty={<p className="hint none">You have none.</p>}
      />
      {isMaking ? <NewToken onClose={() => setMaking(false)} /> : null}
    </Panel>
  );
}

const COLUMNS: readonly Column<Token>[] = [
  { title: 'Name', look: 'main', render: ({ name }) => name },
  { title: 'Ends with', render: ({ prefix }) => <span className="mono">…{prefix}</span> },
  { title: 'Last used', look: 'small', render: ({ last_used_at }) => <Time at={last_used_at} /> },
  { title: 'Expires', look: 'small', render: ({ expires_at }) => <Time at={expires_at} /> },
  { title: 'Actions', look: 'end', render: (token) => <Revoke {...token} /> },
];

function Revoke({ id, name }: Token) {
  const action = useAction('tokens.revoke');
  return (
    <RemoveButton
      label={`Revoke ${name}`}
      question={`Revoke ${name}?`}
      verb="Revoke it"
      input={{ params: { id } }}
      action={action}
    >
      <p>Whatever uses it is refused from its next request on.</p>
    </RemoveButton>
  );
}

function NewToken({ onClose }: { readonly onClose: () => void }) {
  const [name, setName] = useState('');
  const [days, setDays] = useState('90');
  const make = useAction('tokens.create');
  const token = make.data?.token;
  if (typeof token === 'string')
    return <OnceDialog title={`The token ${name}`} label="Token" secret={token} onClose={onClose} />;
  return (
    <FormDialog
      title="New personal access token"
      action="Make it"
      isBusy={make.isPending}
      error={make.error}
      onSubmit={() => make.mutate({ body: { name: name.trim(), expires_at: expiryOf(days) } })}
      onClose={onClose}
    >
      <TextField
        label="Name"
        field="name"
        required
        autoFocus
        maxLength={128}
        value={name}
        onChange={setName}
      />
      <ExpiryField value={days} onChange={setDays} />
    </FormDialog>
  );
}
