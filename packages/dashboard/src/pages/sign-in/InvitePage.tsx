import { useQuery, useQueryClient } from '@tanstack/react-query';

import { ACCOUNT, type Account } from '../../api/account.ts';
import { useAction } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { Failure } from '../../parts/Failure.tsx';
import { FormFailure } from '../../parts/Form.tsx';
import { Loading } from '../../parts/Loading.tsx';
import { navigate } from '../../router/location.ts';
import { Door } from './Door.tsx';

import { SignUpForm } from './SignUpPage.tsx';
import { useSecret } from './use-secret.ts';

/** `/invite#token=…`: whoever has no account makes one, and then decides. */
export function InvitePage() {
  const token = useSecret('token');
  const cache = useQueryClient();
  const { data: account, error } = useQuery(ACCOUNT);
  if (token === null) return <Spent />;
  if (account === undefined) return error === null ? <Loading /> : <Failure error={error} />;
  const signedUp = () => void cache.invalidateQueries({ queryKey: ACCOUNT.queryKey });
  if (account === null) return <SignUpForm way="invite" token={token} onDone={signedUp} />;
  return <Decide token={token} account={account} />;
}

function Decide({ token, account }: { readonly token: string; readonly account: Account }) {
  const cache = useQueryClient();
  const leave = async (path: string): Promise<void> => {
    await cache.resetQueries({ queryKey: ACCOUNT.queryKey });
    navigate(path, { replace: true });
  };
  const accept = useAction('invites.accept', { onDone: ({ slug }) => void leave(`/orgs/${slug}`) });
  const decline = useAction('invites.decline', { onDone: () => void leave('/') });
  const error = accept.error ?? decline.error;
  return (
    <Door
      title="You are invited"
      hint={
        <>
          To an organization on this server, as <strong>{account.user.email}</strong>.
        </>
      }
      error={error}
      onSubmit={() => accept.mutate({ params: { token } })}
    >
      <FormFailure />
      <Button type="submit" look="primary" isBusy={accept.isPending}>
        Join it
      </Button>
      <Button look="quiet" isBusy={decline.isPending} onClick={() => decline.mutate({ params: { token } })}>
        Decline
      </Button>
    </Door>
  );
}

function Spent() {
  return (
    <Door
      title="Open the link again"
      hint="The secret of an invite stands in its link, and this address has none."
      error={null}
      onSubmit={() => navigate('/')}
    >
      <Button type="submit">Go on</Button>
    </Door>
  );
}
