import { useState } from 'react';
import { useAccount } from '../../api/account.ts';
import { useAction } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { TextField } from '../../parts/Field.tsx';
import { FormDialog } from '../../parts/FormDialog.tsx';
import { Panel } from '../../parts/Panel.tsx';

/** Deletes the account after the user has proved again that it is theirs. */
export function DeleteAccount() {
  const [isAsking, setAsking] = useState(false);
  return (
    <Panel title="Delete your account">
      <p className="hint">
        Your tokens, SSH keys and memberships are deleted for good. Organizations and what is in them stay.
      </p>
      <div className="actions">
        <Button look="danger" onClick={() => setAsking(true)}>
          Delete your account
        </Button>
      </div>
      {isAsking ? <Ask onClose={() => setAsking(false)} /> : null}
    </Panel>
  );
}

function Ask({ onClose }: { readonly onClose: () => void }) {
  const { user } = useAccount();
  const [confirm, setConfirm] = useState('');
  const [password, setPassword] = useState('');
  const [code, setCode] = useState('');
  const remove = useAction('users.remove', { onDone: () => location.assign('/') });
  const body = {
    confirm,
    ...(password === '' ? {} : { current_password: password }),
    ...(code === '' ? {} : { code: code.trim() }),
  };
  return (
    <FormDialog
      title="Delete your account?"
      action="Delete it for good"
      isBusy={remove.isPending}
      error={remove.error}
      onSubmit={() => remove.mutate({ body })}
      onClose={onClose}
    >
      <TextField
        label={`Type ${user.email} to confirm`}
        field="confirm"
        autoComplete="off"
        required
        autoFocus
        value={confirm}
        onChange={setConfirm}
      />
      <TextField
        label="Password"
        field="current_password"
        type="password"
        autoComplete="current-password"
        value={password}
        onChange={setPassword}
      />
      <TextField
        label="Or a code from your authenticator app"
        field="code"
        autoComplete="one-time-code"
        value={code}
        onChange={setCode}
      />
    </FormDialog>
  );
}
