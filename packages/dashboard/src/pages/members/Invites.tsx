import type { Role } from '@svc/contract/rest';
import type { RestCallOutput } from '@svc/sdk';
import { useState } from 'react';
import { useOrganization } from '../../api/organization.ts';
import { useAction, useCall } from '../../api/use-call.ts';
import { DataTable, type Column } from '../../parts/DataTable.tsx';
import { SelectField, TextField } from '../../parts/Field.tsx';
import { FormDialog } from '../../parts/FormDialog.tsx';
import { OnceDialog } from '../../parts/OnceDialog.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { RemoveButton } from '../../parts/RemoveButton.tsx';
import { Time } from '../../parts/Time.tsx';

type Invite = RestCallOutput<'invites.list'>[number];

/** Invites that are neither accepted nor declined yet. */
export function Invites() {
  const { data, error } = useCall('invites.list', {});
  return (
    <Panel title="Open invites" isFlush>
      <DataTable
        label="Open invites"
        columns={COLUMNS}
        rows={data}
        keyOf={({ id }) => id}
        error={error}
        empty={<p className="hint none">No open invites.</p>}
      />
    </Panel>
  );
}

const COLUMNS: readonly Column<Invite>[] = [
  { title: 'Address', look: 'main', render: ({ email }) => email },
  { title: 'Role', render: ({ role }) => role },
  { title: 'Expires', look: 'small', render: ({ expires_at }) => <Time at={expires_at} /> },
  { title: 'Actions', look: 'end', render: (invite) => <Withdraw {...invite} /> },
];

function Withdraw({ id, email }: Invite) {
  const action = useAction('invites.remove');
  return (
    <RemoveButton
      label={`Withdraw the invite to ${email}`}
      question={`Withdraw the invite to ${email}?`}
      verb="Withdraw it"
      input={{ params: { invite_id: id } }}
      action={action}
    >
      <p>The link that this person was sent stops working at once.</p>
    </RemoveButton>
  );
}

export function NewInvite({ onClose }: { readonly onClose: () => void }) {
  const { role: own } = useOrganization();
  const [email, setEmail] = useState('');
  const [role, setRole] = useState<Role>('member');
  const invite = useAction('invites.create');
  const roles: readonly Role[] = own === 'owner' ? ['member', 'admin', 'owner'] : ['member', 'admin'];
  const made = invite.data;
  if (typeof made?.token === 'string')
    return (
      <OnceDialog
        title={`Send this link to ${made.email}`}
        label="Link"
        secret={`${location.origin}/invite#token=${made.token}`}
        advice="Copy the link and send it: svc sends no mail."
        done="Done"
        onClose={onClose}
      >
        <p className="hint">
          Only an account with this address can use it, once. The invite is for the role {made.role} and
          expires <Time at={made.expires_at} />. Lost the link? A new invite to the same address replaces it.
        </p>
      </OnceDialog>
    );
  return (
    <FormDialog
      title="Invite a person"
      action="Create the link"
      isBusy={invite.isPending}
      error={invite.error}
      onSubmit={() => invite.mutate({ body: { email: email.trim(), role } })}
      onClose={onClose}
    >
      <TextField
        label="E-mail address"
        field="email"
        hint="svc sends no mail: you get a link to pass on"
        inputMode="email"
        required
        autoFocus
        value={email}
        onChange={setEmail}
      />
      <SelectField
        label="Role"
        field="role"
        choices={roles.map((each) => [each, each] as const)}
        value={role}
        onChange={(value) => setRole(roles.find((each) => each === value) ?? 'member')}
      />
    </FormDialog>
  );
}
