import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { ACCOUNT } from '../api/account.ts';
import { useAction } from '../api/use-call.ts';
import { Button } from '../parts/Button.tsx';
import { TextField } from '../parts/Field.tsx';
import { Form, FormFailure } from '../parts/Form.tsx';

/** For users without an organization: they create one, or wait for an invite. */
export function NoOrganization() {
  const [name, setName] = useState('');
  const cache = useQueryClient();
  const create = useAction('organizations.create', {
    onDone: () => void cache.invalidateQueries({ queryKey: ACCOUNT.queryKey }),
  });
  return (
    <main className="sign-in">
      <Form
        className="panel sign-in-panel"
        error={create.error}
        onSubmit={() => create.mutate({ body: { name: name.trim() } })}
      >
        <h1>Your first organization</h1>
        <p className="hint">
          Sandboxes, volumes and keys belong to an organization. Were you invited to one? Then open the link
          of the invite instead.
        </p>
        <TextField
          label="Name"
          field="name"
          required
          maxLength={128}
          value={name}
          onChange={setName}
          placeholder="Acme"
        />
        <FormFailure />
        <Button type="submit" look="primary" isBusy={create.isPending}>
          Create
        </Button>
      </Form>
    </main>
  );
}
