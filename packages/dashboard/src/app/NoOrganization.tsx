import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { ACCOUNT } from '../api/account.ts';
import { useAction } from '../api/use-call.ts';
import { Button } from '../parts/Button.tsx';
import { Failure } from '../parts/Failure.tsx';
import { TextField } from '../parts/Field.tsx';

/** Somebody who belongs to none yet makes one, or waits for an invite. */
export function NoOrganization() {
  const [name, setName] = useState('');
  const cache = useQueryClient();
  const create = useAction('organizations.create', {
    onDone: () => void cache.invalidateQueries({ queryKey: ACCOUNT.queryKey }),
  });
  return (
    <main className="door">
      <form
        className="panel door-panel"
        onSubmit={(event) => {
          event.preventDefault();
          create.mutate({ body: { name: name.trim() } });
        }}
      >
        <h1>Your first organization</h1>
        <p className="hint">
          Sandboxes, volumes and keys belong to one. If somebody has invited you to theirs, open their link
          instead.
        </p>
        <TextField label="Name" required maxLength={128} value={name} onChange={setName} placeholder="Acme" />
        {create.error === null ? null : <Failure error={create.error} />}
        <Button type="submit" look="primary" isBusy={create.isPending}>
          Make it
        </Button>
      </form>
    </main>
  );
}
