import type { RestCallOutput } from '@svc/sdk';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { ACCOUNT, useAccount } from '../../api/account.ts';
import { useAction, useCall } from '../../api/use-call.ts';
import { NewPasswordField } from '../../parts/AccountFields.tsx';
import { Button } from '../../parts/Button.tsx';
import { DataTable, type Column } from '../../parts/DataTable.tsx';
import { TextField } from '../../parts/Field.tsx';
import { Form, FormFailure } from '../../parts/Form.tsx';
import { Page } from '../../parts/Page.tsx';
import { Panel } from '../../parts/Panel.tsx';
import { Time } from '../../parts/Time.tsx';
import { showToast } from '../../parts/toast-list.ts';
import { DeleteAccount } from './DeleteAccount.tsx';
import { nameOfBrowser } from './name-of-browser.ts';
import { SecondFactor } from './SecondFactor.tsx';
import { SshKeys } from './SshKeys.tsx';
import { Tokens } from './Tokens.tsx';

type Session = RestCallOutput<'sessions.list'>[number];

/** Settings and credentials of the user, across organizations. */
export function AccountPage() {
  const { user, session } = useAccount();
  if (session !== null && session.organization_id !== null)
    return (
      <Page title="Your account" hint={user.email}>
        <Panel title="Signed in at an identity provider">
          <p>
            This session is limited to the organization whose provider you signed in at. Sign in with a
            password or a link to change what belongs to you.
          </p>
        </Panel>
      </Page>
    );
  return (
    <Page title="Your account" hint={user.email}>
      <Profile />
      {session === null ? null : (
        <>
          <Password />
          <SecondFactor />
        </>
      )}
      <Tokens />
      <SshKeys />
      {session === null ? null : (
        <>
          <Sessions />
          <DeleteAccount />
        </>
      )}
    </Page>
  );
}

function Profile() {
  const { user } = useAccount();
  const cache = useQueryClient();
  const [name, setName] = useState(user.display_name ?? '');
  const save = useAction('users.update', {
    onDone: () => {
      void cache.invalidateQueries({ queryKey: ACCOUNT.queryKey });
      showToast('Saved');
    },
  });
  return (
    <Panel title="Profile">
      <Form
        error={save.error}
        onSubmit={() => save.mutate({ body: { display_name: name.trim() === '' ? null : name.trim() } })}
      >
        <TextField
          label="Name"
          field="display_name"
          hint="As other members see it"
          maxLength={128}
          value={name}
          onChange={setName}
        />
        <FormFailure />
        <div className="actions">
          <Button type="submit" isBusy={save.isPending}>
            Save
          </Button>
        </div>
      </Form>
    </Panel>
  );
}

function Password() {
  const [current, setCurrent] = useState('');
  const [password, setPassword] = useState('');
  const save = useAction('password.set', {
    onDone: ({ message }) => {
      setCurrent('');
      setPassword('');
      showToast(message);
    },
  });
  const body = { password, ...(current === '' ? {} : { current_password: current }) };
  return (
    <Panel title="Password">
      <Form error={save.error} onSubmit={() => save.mutate({ body })}>
        <div className="fields">
          <TextField
            label="Current password"
            field="current_password"
            hint="Empty if you have none yet"
            type="password"
            autoComplete="current-password"
            value={current}
            onChange={setCurrent}
          />
          <NewPasswordField label="New password" value={password} onChange={setPassword} />
        </div>
        <FormFailure />
        <div className="actions">
          <Button type="submit" isBusy={save.isPending}>
            Change it
          </Button>
        </div>
      </Form>
    </Panel>
  );
}

function Sessions() {
  const { data, error } = useCall('sessions.list', {});
  const end = useAction('sessions.endAll', { onDone: () => location.assign('/') });
  return (
    <Panel
      title="Sessions"
      isFlush
      actions={
        <Button
          look="danger"
          isBusy={end.isPending}
          onClick={() =>
            end.mutate({}, { onError: (failure) => showToast('You are still signed in', failure) })
          }
        >
          Sign out everywhere
        </Button>
      }
    >
      <DataTable
        label="Sessions"
        columns={COLUMNS}
        rows={data}
        keyOf={({ id }) => id}
        error={error}
        empty={<p className="hint none">No sessions.</p>}
      />
    </Panel>
  );
}

const COLUMNS: readonly Column<Session>[] = [
  {
    title: 'Browser',
    look: 'main',
    render: ({ user_agent, is_current }) => (
      <>
        <span title={user_agent}>{nameOfBrowser(user_agent)}</span>
        {is_current ? <span className="hint"> this one</span> : null}
      </>
    ),
  },
  { title: 'Address', look: 'small', render: ({ source_address }) => source_address ?? '–' },
  { title: 'Signed in', render: ({ created_at }) => <Time at={created_at} /> },
  { title: 'Expires', look: 'small', render: ({ expires_at }) => <Time at={expires_at} /> },
];
