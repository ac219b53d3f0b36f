import { useEffect, useRef, useState } from 'react';
import { useAction } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { TextField } from '../../parts/Field.tsx';
import { FormFailure } from '../../parts/Form.tsx';
import { Loading } from '../../parts/Loading.tsx';
import { Link } from '../../router/Link.tsx';
import { SignInForm } from './SignInForm.tsx';
import { useSignedIn } from './use-signed-in.ts';

/** Kept in this tab alone while the browser is at the provider, and gone once it is back. */
const TICKET = 'provider-ticket';

/** Signing in at the identity provider of an organization: where it begins, and where the provider sends the browser back to. */
export function ProviderPage() {
  const [answer] = useState(readAnswer);
  useEffect(() => {
    sessionStorage.removeItem(TICKET);
    if (location.search !== '') history.replaceState(null, '', location.pathname);
  }, []);
  return answer === null ? <Begin /> : <End {...answer} />;
}

function Begin() {
  const [slug, setSlug] = useState('');
  const begin = useAction('session.beginAtProvider', {
    onDone: ({ authorization_url: url, ticket }) => {
      sessionStorage.setItem(TICKET, ticket);
      location.assign(url);
    },
  });
  const redirect = `${location.origin}/sign-in/provider`;
  return (
    <SignInForm
      title="Sign in with an identity provider"
      hint="The one that your organization has set up."
      error={begin.error}
      onSubmit={() => begin.mutate({ body: { organization: slug.trim(), redirect_uri: redirect } })}
      foot={<Link href="/sign-in">Sign in with a password</Link>}
    >
      <TextField
        label="Organization"
        field="organization"
        placeholder="acme"
        required
        autoFocus
        value={slug}
        onChange={setSlug}
      />
      <FormFailure />
      <Button type="submit" look="primary" isBusy={begin.isPending}>
        Continue
      </Button>
    </SignInForm>
  );
}

interface Answer {
  readonly state: string;
  readonly code: string;
  readonly ticket: string;
}

function End(answer: Answer) {
  const signedIn = useSignedIn();
  const sent = useRef(false);
  const end = useAction('session.createByProvider', { onDone: () => void signedIn() });
  useEffect(() => {
    // A code works once.
    if (sent.current) return;
    sent.current = true;
    end.mutate({ body: answer });
  });
  if (end.error === null) return <Loading />;
  return (
    <SignInForm
      title="You are not signed in"
      error={end.error}
      onSubmit={() => location.assign('/sign-in/provider')}
    >
      <FormFailure />
      <Button type="submit" look="primary">
        Begin again
      </Button>
    </SignInForm>
  );
}

/** What the browser came back with. Only read: what is drawn may be drawn twice before it is shown. */
function readAnswer(): Answer | null {
  const search = new URLSearchParams(location.search);
  const ticket = sessionStorage.getItem(TICKET);
  const [state, code] = [search.get('state'), search.get('code')];
  return state === null || code === null || ticket === null ? null : { state, code, ticket };
}
