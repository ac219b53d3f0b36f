import { useState } from 'react';
import { useAction } from '../../api/use-call.ts';
import { Button } from '../../parts/Button.tsx';
import { Failure } from '../../parts/Failure.tsx';
import { TextField } from '../../parts/Field.tsx';
import { Link } from '../../router/Link.tsx';
import { Door } from './Door.tsx';
import { useSignedIn } from './use-signed-in.ts';

interface SignUpProps {
  /** Of an invite; null: whoever wants one types it, or signs up freely where that is allowed. */
  readonly token: string | null;
  readonly onDone: () => void;
}

export function SignUpPage() {
  const signedIn = useSignedIn();
  return <SignUpForm token={null} onDone={() => void signedIn()} />;
}

export function SignUpForm({ token, onDone }: SignUpProps) {
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
      title={token === null ? 'Make an account' : 'Accept the invite'}
      hint={
        token === null
          ? 'With an invite, open its link: it is for the address that it was made for.'
          : 'With the address that you were invited under.'
      }
      onSubmit={submit}
      foot={
        <>
          Have an account? <Link href="/sign-in">Sign in</Link>
        </>
      }
    >
      <TextField
        label="E-mail address"
        type="text"
        inputMode="email"
        autoComplete="username"
        autoFocus
        required
        value={email}
        onChange={setEmail}
      />
      <TextField label="Your name" autoComplete="name" maxLength={128} value={name} onChange={setName} />
      <TextField
        label="Password"
        type="password"
        autoComplete="new-password"
        minLength={10}
        required
        hint="At least 10 characters"
        value={password}
        onChange={setPassword}
      />
      {signUp.error === null ? null : <Failure error={signUp.error} />}
      <Button type="submit" look="primary" isBusy={signUp.isPending}>
        Make the account
      </Button>
    </Door>
  );
}
