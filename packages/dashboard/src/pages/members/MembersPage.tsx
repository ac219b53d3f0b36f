import type { Role } from '@svc/contract/rest';
import type { RestCallOutput } from '@svc/sdk';
import { useState } from 'react';
import { useAccount } from '../../api/account.ts';
import { changeShown } from '../../api/change-shown.ts';
import { canAct, useOrganization } from '../../api/organization.ts';
import { useAction, usePages } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { DataTable, type Column } from '../../parts/DataTable.tsx';
import { EmptyState } from '../../parts/EmptyState.tsx';
import { Page } from '../../parts/Page.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { RemoveButton } from '../../parts/RemoveButton.tsx';
import { Time } from '../../parts/Time.tsx';
import { showToast } from '../../parts/toast-list.ts';
import { Invites, NewInvite } from './Invites.tsx';

type Member = RestCallOutput<'members.list'>['data'][number];

/** The members of the organization and their roles. */
export function MembersPage() {
  const { role } = useOrganization();
  const [isInviting, setInviting] = useState(false);
  const pages = usePages('members.list', { query: { limit: 50 } });
  const mayInvite = canAct(role, 'admin');
  return (
    <Page
      title="Members"
      hint="Members use sandboxes; admins also invite people and see the audit log; owners also change the organization."
      actions={
        mayInvite ? (
          <Button look="primary" icon="plus" onClick={() => setInviting(true)}>
            Invite a person
          </Button>
        ) : null
      }
    >
      <Panel isFlush>
        <DataTable
          label="Members"
          columns={COLUMNS}
          rows={pages.items}
          keyOf={({ user_id }) => user_id}
          error={pages.error}
          more={pages}
          empty={
            <EmptyState icon="users" title="No members">
              <p>The operator adds a person with `svc user link`.</p>
            </EmptyState>
          }
        />
      </Panel>
      {mayInvite ? <Invites /> : null}
      {isInviting ? <NewInvite onClose={() => setInviting(false)} /> : null}
    </Page>
  );
}

const COLUMNS: readonly Column<Member>[] = [
  {
    title: 'Person',
    look: 'main',
    render: ({ display_name, email }) => (
      <>
        {display_name ?? email}
        {display_name === null ? null : <span className="hint block">{email}</span>}
      </>
    ),
  },
  { title: 'Role', render: (member) => <RoleChoice member={member} /> },
  { title: 'Joined', look: 'small', render: ({ joined_at }) => <Time at={joined_at} /> },
  { title: 'Actions', look: 'end', render: (member) => <Remove member={member} /> },
];

function RoleChoice({ member }: { readonly member: Member }) {
  const { role: own } = useOrganization();
  const change = useAction('members.update', {
    optimistically: (cache, { params: { user_id }, body }) =>
      changeShown(cache, ['members.list'], { user_id }, body),
  });
  const mayChange = canAct(own, member.role === 'owner' ? 'owner' : 'admin');
  const roles: readonly Role[] = own === 'owner' ? ['member', 'admin', 'owner'] : ['member', 'admin'];
  if (!mayChange) return member.role;
  return (
    <select
      aria-label={`Role of ${member.email}`}
      value={member.role}
      disabled={change.isPending}
      onChange={(event) => {
        const role = roles.find((each) => each === event.target.value) ?? member.role;
        const input = { params: { user_id: member.user_id }, body: { role } };
        change.mutate(input, {
          onError: (error) => showToast(`${member.email} stays ${member.role}`, error),
        });
      }}
    >
      {roles.map((role) => (
        <option key={role}>{role}</option>
      ))}
    </select>
  );
}

function Remove({ member }: { readonly member: Member }) {
  const { user } = useAccount();
  const { role } = useOrganization();
  const action = useAction('members.remove', { onDone: ({ message }) => showToast(message) });
  const mayRemove = canAct(role, member.role === 'owner' ? 'owner' : 'admin');
  if (!mayRemove || member.user_id === user.id) return null;
  return (
    <RemoveButton
      label={`Remove ${member.email}`}
      question={`Remove ${member.email}?`}
      verb="Remove them"
      input={{ params: { user_id: member.user_id } }}
      action={action}
    >
      <p>
        Their sessions, tokens and SSH keys no longer work here. API keys that they made belong to the
        organization and go on working.
      </p>
    </RemoveButton>
  );
}
