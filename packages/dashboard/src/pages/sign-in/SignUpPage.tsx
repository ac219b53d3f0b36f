import { useState, type ReactNode } from 'react';
import { useAction } from '../../api/use-call.ts';
import { EmailField, NewPasswordField } from '../../parts/AccountFields.tsx';
import { Button } from '../../parts/Button.tsx';
import { TextField } from '../../parts/Field.tsx';
import { FormFailure } from '../../parts/Form.tsx';
import { Link } from '../../router/Link.tsx';
import { SignInForm } from './SignInForm.tsx';
import { useSecret } from './use-secret.ts';
import { useSignedIn } from './use-signed-in.ts';

/** What the form says, by what the address has. */
const WAYS = {
  open: {
    title: 'Create an account',
    hint: 'If you were invited, open the link of the invite instead.',
  },
  owner: {
    title: 'Welcome to svc',
    hint: 'This is the first account. It owns the organization “default”, to which the API keys of this machine belong too.',
  },
} as const;

interface SignUpProps {
  readonly title: string;
  readonly hint: ReactNode;
  readonly foot: ReactNode;
  /** The only address that the token is good for: that of an invite. */
  readonly fixedEmail?: string;
  /** Of an invite, or of the link that the first start printed. */
  readonly token: string | null;
  readonly onDone: () => void;
}

/** `/sign-up`, and `/sign-up#owner=…` for the first person. */
export function SignUpPage() {
  const owner = useSecret('owner');
  const signedIn = useSignedIn();
  const way = WAYS[owner === null ? 'open' : 'owner'];
  return <SignUpForm {...way} token={owner} foot={<SignInInstead />} onDone={() => void signedIn()} />;
}

function SignInInstead() {
  return (
    <>
      Have an account? <Link href="/sign-in">Sign in</Link>
    </>
  );
}

export function SignUpForm({ title, hint, foot, fixedEmail, token, onDone }: SignUpProps) {
  const [email, setEmail] = useState(fixedEmail ?? '');
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const signUp = useAction('sessions.signUp', { onDone });
  const submit = (): void =>
    signUp.mutate({
      body: {
        email: email.trim(),
        password,
        ...(name.trim() === '' ? {} : { display_name: name.trim() }),
        ...(token === null ? {} : { token }),
      },
    });
  return (
    <SignInForm title={title} hint={hint} error={signUp.error} onSubmit={submit} foot={foot}>
      <EmailField value={email} onChange={setEmail} isFixed={fixedEmail !== undefined} />
      <TextField
        label="Your name"
        field="display_name"
        hint="As other members see it; you can leave it empty"
        autoFocus={fixedEmail !== undefined}
        autoComplete="name"
        maxLength={128}
        value={name}
        onChange={setName}
      />
      <NewPasswordField value={password} onChange={setPassword} />
      <FormFailure />
      <Button type="submit" look="primary" isBusy={signUp.isPending}>
        Create the account
      </Button>
    </SignInForm>
  );
}
