import type { RestCallOutput } from '@svc/sdk';
import { useState } from 'react';
import { useAction, usePages } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { CodeBlock } from '../../parts/CodeBlock.tsx';
import { DataTable, type Column } from '../../parts/DataTable.tsx';
import { EmptyState } from '../../parts/EmptyState.tsx';
import { ExpiryField, expiryOf } from '../../parts/ExpiryField.tsx';
import { TextField } from '../../parts/Field.tsx';
import { FormDialog } from '../../parts/FormDialog.tsx';
import { OnceDialog } from '../../parts/OnceDialog.tsx';
import { Page } from '../../parts/Page.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { RemoveButton } from '../../parts/RemoveButton.tsx';
import { Time } from '../../parts/Time.tsx';

type ApiKey = RestCallOutput<'apiKeys.list'>['data'][number];

/** Keys that programs use in the name of the organization. */
export function KeysPage() {
  const [isMaking, setMaking] = useState(false);
  const pages = usePages('apiKeys.list', { query: { limit: 50 } });
  const make = (
    <Button look="primary" icon="plus" onClick={() => setMaking(true)}>
      New key
    </Button>
  );
  return (
    <Page
      title="API keys"
      hint="Programs act for the organization with one. Members see their own, admins all of them."
      actions={make}
    >
      <Panel isFlush>
        <DataTable
          label="API keys"
          columns={COLUMNS}
          rows={pages.items}
          keyOf={({ id }) => id}
          error={pages.error}
          more={pages}
          empty={
            <EmptyState icon="key" title="No keys yet">
              <p>The CLI, the SDK and MCP clients need one to reach this organization.</p>
              {make}
            </EmptyState>
          }
        />
      </Panel>
      {isMaking ? <NewKey onClose={() => setMaking(false)} /> : null}
    </Page>
  );
}

const COLUMNS: readonly Column<ApiKey>[] = [
  { title: 'Name', look: 'main', render: ({ name }) => name },
  { title: 'Ends with', render: ({ prefix }) => <span className="mono">…{prefix}</span> },
  { title: 'Made', look: 'small', render: ({ created_at }) => <Time at={created_at} /> },
  { title: 'Last used', look: 'small', render: ({ last_used_at }) => <Time at={last_used_at} /> },
  { title: 'Expires', look: 'small', render: ({ expires_at }) => <Time at={expires_at} /> },
  { title: 'Actions', look: 'end', render: (key) => <Revoke {...key} /> },
];

function Revoke({ id, name }: ApiKey) {
  const action = useAction('apiKeys.revoke');
  return (
    <RemoveButton
      label={`Revoke ${name}`}
      question={`Revoke ${name}?`}
      verb="Revoke it"
      input={{ params: { id } }}
      action={action}
    >
      <p>Whatever uses it is refused from its next request on. This cannot be undone.</p>
    </RemoveButton>
  );
}

function NewKey({ onClose }: { readonly onClose: () => void }) {
  const [name, setName] = useState('');
  const [days, setDays] = useState('90');
  const make = useAction('apiKeys.create');
  const key = make.data?.key;
  if (typeof key === 'string')
    return (
      <OnceDialog title={`The key ${name}`} label="API key" secret={key} onClose={onClose}>
        <CodeBlock
          label="In a shell"
          text={`export SVC_API_URL=${location.origin}\nexport SVC_API_KEY=…\nsvc ps`}
        />
      </OnceDialog>
    );
  return (
    <FormDialog
      title="New API key"
      action="Make it"
      isBusy={make.isPending}
      error={make.error}
      onSubmit={() => make.mutate({ body: { name: name.trim(), expires_at: expiryOf(days) } })}
      onClose={onClose}
    >
      <TextField
        label="Name"
        field="name"
        hint="What uses it: you will know it by this"
        placeholder="ci"
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
