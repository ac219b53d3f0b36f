import { useState, type ReactNode } from 'react';
import type { Column } from './DataTable.tsx';
import { ExpiryField, expiryOf } from './ExpiryField.tsx';
import { TextField } from './Field.tsx';
import { FormDialog } from './FormDialog.tsx';
import { RemoveButton } from './RemoveButton.tsx';
import { Time } from './Time.tsx';

// Shared by API keys and personal access tokens.

interface Credential {
  readonly id: string;
  readonly name: string;
  /** Its last characters. */
  readonly prefix: string;
  readonly created_at: string;
  readonly last_used_at?: string | null;
  readonly expires_at?: string | null;
}

export function credentialColumns<Row extends Credential>(
  revoke: (row: Row) => ReactNode,
): readonly Column<Row>[] {
  return [
    { title: 'Name', look: 'main', render: ({ name }) => name },
    { title: 'Ends with', render: ({ prefix }) => <span className="mono">…{prefix}</span> },
    { title: 'Created', look: 'small', render: ({ created_at }) => <Time at={created_at} /> },
    { title: 'Last used', look: 'small', render: ({ last_used_at }) => <Time at={last_used_at ?? null} /> },
    { title: 'Expires', look: 'small', render: ({ expires_at }) => <Time at={expires_at ?? null} /> },
    { title: 'Actions', look: 'end', render: revoke },
  ];
}

interface RevokeProps {
  readonly credential: Credential;
  readonly action: Parameters<typeof RemoveButton<{ readonly params: { readonly id: string } }>>[0]['action'];
}

export function RevokeCredential({ credential: { id, name }, action }: RevokeProps) {
  return (
    <RemoveButton
      label={`Revoke ${name}`}
      question={`Revoke ${name}?`}
      verb="Revoke it"
      input={{ params: { id } }}
      action={action}
    >
      <p>Programs that use it are refused from their next request on. This cannot be undone.</p>
    </RemoveButton>
  );
}

interface NewCredentialProps {
  readonly title: string;
  readonly isBusy: boolean;
  readonly error: unknown;
  readonly onMake: (body: { readonly name: string; readonly expires_at: string | null }) => void;
  readonly onClose: () => void;
}

export function NewCredential({ title, isBusy, error, onMake, onClose }: NewCredentialProps) {
  const [name, setName] = useState('');
  const [days, setDays] = useState('90');
  return (
    <FormDialog
      title={title}
      action="Create"
      isBusy={isBusy}
      error={error}
      onSubmit={() => onMake({ name: name.trim(), expires_at: expiryOf(days) })}
      onClose={onClose}
    >
      <TextField
        label="Name"
        field="name"
        hint="To recognize the program that uses it"
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
