import { useState } from 'react';
import { useAction, usePages } from '../../api/use-call.ts';
import { SelectField, TextField } from '../../parts/Field.tsx';
import { FormDialog } from '../../parts/FormDialog.tsx';
import { showToast } from '../../parts/toast-list.ts';

/** Makes a snapshot of a sandbox that runs or has run: before its first start it has no disk. */
export function NewSnapshot({ onClose }: { readonly onClose: () => void }) {
  const [name, setName] = useState('');
  const [chosen, setChosen] = useState('');
  const sandboxes = usePages('sandboxes.list', { query: { limit: 100 } });
  const create = useAction('snapshots.create', {
    onDone: () => {
      showToast(`${name} is being made`);
      onClose();
    },
  });
  const choices = (sandboxes.items ?? [])
    .filter(({ status }) => status === 'running' || status === 'stopped')
    .map((sandbox) => [sandbox.id, `${sandbox.name} (${sandbox.status})`] as const);
  const id = chosen === '' ? choices[0]?.[0] : chosen;
  const submit = (): void => {
    if (id !== undefined) create.mutate({ body: { kind: 'disk', sandbox_id: id, name: name.trim() } });
  };
  return (
    <FormDialog
      title="New snapshot"
      action="Create"
      isBusy={create.isPending}
      error={create.error ?? sandboxes.error}
      onSubmit={submit}
      onClose={onClose}
    >
      <SelectField
        label="Sandbox"
        field="sandbox_id"
        hint={
          sandboxes.items !== undefined && choices.length === 0
            ? 'No sandbox runs or has run: start one first'
            : 'Its disk is saved as it is now; what is only in its memory is not'
        }
        required
        choices={choices}
        value={id ?? ''}
        onChange={setChosen}
      />
      <TextField
        label="Name"
        field="name"
        hint="Letters, digits, dots, hyphens, underscores"
        required
        autoFocus
        pattern="[A-Za-z0-9][A-Za-z0-9._\-]{0,127}"
        value={name}
        onChange={setName}
      />
    </FormDialog>
  );
}
