import { useState } from 'react';
import { useAction } from '../../api/use-call.ts';
import { NewPasswordField, SecondFactorField } from '../../parts/AccountFields.tsx';
import { Button } from '../../parts/Button.tsx';
import { FormFailure } from '../../parts/Form.tsx';
import { Link } from '../../router/Link.tsx';
import { SignInForm } from './SignInForm.tsx';
import { wantsCode } from './wants-code.ts';
import { useSignedIn } from './use-signed-in.ts';

/** A link works once, so it is used when its reader says so, not when a program looks at what it leads to. */
export function LinkSignIn({ token }: { readonly token: string }) {
  const [code, setCode] = useState('');
  const [needsCode, setNeedsCode] = useState(false);
  const [email, setEmail] = useState<string | null>(null);
  const signIn = useAction('session.createByLink', { onDone: ({ user }) => setEmail(user.email) });
  if (email !== null) return <ChoosePassword email={email} />;
  const submit = (): void => {
    const body = { token, ...(code === '' ? {} : { code }) };
    // Once asked for it stays: while it is sent, and when something else is wrong.
    signIn.mutate({ body }, { onError: (error) => setNeedsCode(needsCode || wantsCode(error)) });
  };
  return (
    <SignInForm
      title="Welcome"
      hint="This link signs you in, once."
      error={wantsCode(signIn.error) && code === '' ? null : signIn.error}
      onSubmit={submit}
      foot={
        <>
          Or <Link href="/sign-in">sign in with a password</Link>
        </>
      }
    >
      {needsCode ? <SecondFactorField value={code} onChange={setCode} /> : null}
      <FormFailure />
      <Button type="submit" look="primary" isBusy={signIn.isPending}>
        Sign in
      </Button>
    </SignInForm>
  );
}

/** With one, the next time needs no link. */
function ChoosePassword({ email }: { readonly email: string }) {
  const [password, setPassword] = useState('');
  const signedIn = useSignedIn();
  const choose = useAction('password.set', { onDone: () => void signedIn() });
  return (
    <SignInForm
      title="Choose a password"
      hint={
        <>
          You are signed in. With a password you get in next time without a link, as <strong>{email}</strong>.
        </>
      }
      error={choose.error}
      onSubmit={() => choose.mutate({ body: { password } })}
    >
      <input type="text" autoComplete="username" value={email} readOnly hidden />
      <NewPasswordField autoFocus value={password} onChange={setPassword} />
      <FormFailure />
      <Button type="submit" look="primary" isBusy={choose.isPending}>
        Set the password
      </Button>
      <Button look="quiet" onClick={() => void signedIn()}>
        Later
      </Button>
    </SignInForm>
  );
}
