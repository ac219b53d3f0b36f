import { useState } from 'react';
import { useAction } from '../../api/use-call.ts';
import { EmailField, NewPasswordField } from '../../parts/AccountFields.tsx';
import { Button } from '../../parts/Button.tsx';
import { TextField } from '../../parts/Field.tsx';
import { FormFailure } from '../../parts/Form.tsx';
import { Link } from '../../router/Link.tsx';
import { Door } from './Door.tsx';
import { useSecret } from './use-secret.ts';
import { useSignedIn } from './use-signed-in.ts';

/** What people are told, by what they come with. */
const WAYS = {
  open: {
    title: 'Make an account',
    hint: 'With an invite, open its link: it is for the address that it was made for.',
  },
  invite: { title: 'Accept the invite', hint: 'With the address that you were invited under.' },
  owner: {
    title: 'Welcome to svc',
    hint: 'Nobody has an account here yet. Yours will own the organization “default”, which programs with a key of this machine act for too.',
  },
} as const;

interface SignUpProps {
  readonly way: keyof typeof WAYS;
  /** Of an invite, or of the link that the first start printed. */
  readonly token: string | null;
  readonly onDone: () => void;
}

/** `/sign-up`, and `/sign-up#owner=…` for the first person. */
export function SignUpPage() {
  const owner = useSecret('owner');
  const signedIn = useSignedIn();
  return <SignUpForm way={owner === null ? 'open' : 'owner'} token={owner} onDone={() => void signedIn()} />;
}

export function SignUpForm({ way, token, onDone }: SignUpProps) {
  const [email, setEmail] = useState('');
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
    <Door
      {...WAYS[way]}
      error={signUp.error}
      onSubmit={submit}
      foot={
        <>
          Have an account? <Link href="/sign-in">Sign in</Link>
        </>
      }
    >
      <EmailField value={email} onChange={setEmail} />
      <TextField
        label="Your name"
        field="display_name"
        autoComplete="name"
        maxLength={128}
        value={name}
        onChange={setName}
      />
      <NewPasswordField value={password} onChange={setPassword} />
      <FormFailure />
      <Button type="submit" look="primary" isBusy={signUp.isPending}>
        Make the account
      </Button>
    </Door>
  );
}
