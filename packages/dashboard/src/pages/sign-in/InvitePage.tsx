import { useQuery, useQueryClient } from '@tanstack/react-query';
import type { RestCallOutput } from '@svc/sdk';
import { useState } from 'react';
import { ACCOUNT } from '../../api/account.ts';
import { useAction, useCall } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { Failure } from '../../parts/Failure.tsx';
import { FormFailure } from '../../parts/Form.tsx';
import { Loading } from '../../parts/Loading.tsx';
import { Time } from '../../parts/Time.tsx';
import { navigate } from '../../router/location.ts';
import { SignInForm } from './SignInForm.tsx';
import { PasswordSignIn } from './SignInPage.tsx';
import { SignUpForm } from './SignUpPage.tsx';
import { useSecret } from './use-secret.ts';

type Invite = RestCallOutput<'invites.get'>;

interface AnswerProps {
  readonly invite: Invite;
  readonly token: string;
}

/** `/invite#token=…`: what the invite is to, then an account if there is none, then the answer. */
export function InvitePage() {
  const token = useSecret('token');
  return token === null ? <NoToken /> : <OpenInvite key={token} token={token} />;
}

function OpenInvite({ token }: { readonly token: string }) {
  const { data: account, error: accountError } = useQuery(ACCOUNT);
  const { data: invite, error } = useCall('invites.get', { params: { token } });
  const failure = error ?? accountError;
  if (failure !== null) return <Unusable error={failure} />;
  if (account === undefined || invite === undefined) return <Loading />;
  if (account === null) return <GetAccount invite={invite} token={token} />;
  if (account.user.email !== invite.email)
    return <OtherAccount email={account.user.email} invite={invite} canSignOut={account.session !== null} />;
  return <Decide invite={invite} token={token} />;
}

/** On this page, because the token of the invite is in no other address. */
function GetAccount({ invite, token }: AnswerProps) {
  const [hasAccount, setHasAccount] = useState(false);
  const cache = useQueryClient();
  const showDecision = () => void cache.invalidateQueries({ queryKey: ACCOUNT.queryKey });
  const way = { title: titleOf(invite), hint: <Terms invite={invite} />, onDone: showDecision };
  const other = (
    <Button look="quiet" onClick={() => setHasAccount(!hasAccount)}>
      {hasAccount ? 'I have no account yet' : 'I have an account'}
    </Button>
  );
  return hasAccount ? (
    <PasswordSignIn {...way} fixedEmail={invite.email} foot={other} />
  ) : (
    <SignUpForm {...way} fixedEmail={invite.email} token={token} foot={other} />
  );
}

function Decide({ invite, token }: AnswerProps) {
  const cache = useQueryClient();
  const leave = async (path: string): Promise<void> => {
    await cache.resetQueries({ queryKey: ACCOUNT.queryKey });
    navigate(path, { replace: true });
  };
  const accept = useAction('invites.accept', { onDone: ({ slug }) => void leave(`/orgs/${slug}`) });
  const decline = useAction('invites.decline', { onDone: () => void leave('/') });
  return (
    <SignInForm
      title={titleOf(invite)}
      hint={<Terms invite={invite} />}
      error={accept.error ?? decline.error}
      onSubmit={() => accept.mutate({ params: { token } })}
    >
      <FormFailure />
      <Button type="submit" look="primary" isBusy={accept.isPending}>
        {titleOf(invite)}
      </Button>
      <Button look="quiet" isBusy={decline.isPending} onClick={() => decline.mutate({ params: { token } })}>
        Decline
      </Button>
    </SignInForm>
  );
}

interface OtherAccountProps {
  readonly email: string;
  readonly invite: Invite;
  /** False in development mode, which has no session. */
  readonly canSignOut: boolean;
}

/** The server lets only the invited address answer. */
function OtherAccount({ email, invite, canSignOut }: OtherAccountProps) {
  const cache = useQueryClient();
  const signOut = useAction('session.end', {
    onDone: () => void cache.resetQueries({ queryKey: ACCOUNT.queryKey }),
  });
  return (
    <SignInForm
      title={titleOf(invite)}
      hint={<Terms invite={invite} />}
      error={signOut.error}
      onSubmit={() => (canSignOut ? signOut.mutate({}) : navigate('/'))}
    >
      <p>
        You are signed in as <strong>{email}</strong>, and the invite is for <strong>{invite.email}</strong>.
      </p>
      <FormFailure />
      <Button type="submit" look="primary" isBusy={signOut.isPending}>
        {canSignOut ? 'Sign out and continue' : 'Go to the overview'}
      </Button>
    </SignInForm>
  );
}

function titleOf({ organization }: Invite): string {
  return `Join ${organization.name}`;
}

function Terms({
  invite: { invited_by: inviter, organization, role, email, expires_at: end },
}: {
  readonly invite: Invite;
}) {
  return (
    <>
      <strong>{inviter.display_name ?? inviter.email}</strong>
      {inviter.display_name === null ? '' : ` (${inviter.email})`} invites you, <strong>{email}</strong>, to
      the organization <strong>{organization.name}</strong> as {role}. The invite expires <Time at={end} />.
    </>
  );
}

function Unusable({ error }: { readonly error: unknown }) {
  return (
    <SignInForm title="This invite cannot be used" error={null} onSubmit={() => navigate('/')}>
      <Failure error={error} />
      <Button type="submit">Go to the start page</Button>
    </SignInForm>
  );
}

function NoToken() {
  return (
    <SignInForm
      title="Open the link again"
      hint="This address is incomplete: open the whole link of the invite."
      error={null}
      onSubmit={() => navigate('/')}
    >
      <Button type="submit">Go to the start page</Button>
    </SignInForm>
  );
}
