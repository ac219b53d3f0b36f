import { useState, type ReactNode } from 'react';
import { useAction } from '../../api/use-call.ts';
import { EmailField, SecondFactorField } from '../../parts/AccountFields.tsx';
import { Button } from '../../parts/Button.tsx';
import { TextField } from '../../parts/Field.tsx';
import { FormFailure } from '../../parts/Form.tsx';
import { Link } from '../../router/Link.tsx';
import { SignInForm } from './SignInForm.tsx';
import { LinkSignIn } from './LinkSignIn.tsx';
import { useSecret } from './use-secret.ts';
import { useSignedIn } from './use-signed-in.ts';
import { wantsCode } from './wants-code.ts';

export function SignInPage() {
  const link = useSecret('link');
  const signedIn = useSignedIn();
  if (link !== null) return <LinkSignIn token={link} />;
  return <PasswordSignIn title="Sign in" foot={<OtherWays />} onDone={() => void signedIn()} />;
}

interface PasswordSignInProps {
  readonly title: string;
  readonly hint?: ReactNode;
  readonly foot: ReactNode;
  /** The only address that helps here: that of an invite. */
  readonly fixedEmail?: string;
  readonly onDone: () => void;
}

export function PasswordSignIn({ title, hint, foot, fixedEmail, onDone }: PasswordSignInProps) {
  const [email, setEmail] = useState(fixedEmail ?? '');
  const [password, setPassword] = useState('');
  const [code, setCode] = useState('');
  const [needsCode, setNeedsCode] = useState(false);
  const signIn = useAction('session.create', { onDone });
  const submit = (): void => {
    const body = { email: email.trim(), password, ...(needsCode && code !== '' ? { code } : {}) };
    signIn.mutate({ body }, { onError: (error) => setNeedsCode(needsCode || wantsCode(error)) });
  };
  // A request for the code is the next step, not a failure.
  const isFirstAsk = wantsCode(signIn.error) && code === '';
  return (
    <SignInForm
      title={title}
      hint={hint}
      error={isFirstAsk ? null : signIn.error}
      onSubmit={submit}
      foot={foot}
    >
      <EmailField value={email} onChange={setEmail} isFixed={fixedEmail !== undefined} />
      <TextField
        label="Password"
        field="password"
        type="password"
        autoComplete="current-password"
        autoFocus={fixedEmail !== undefined}
        required
        value={password}
        onChange={setPassword}
      />
      {needsCode ? <SecondFactorField value={code} onChange={setCode} /> : null}
      <FormFailure />
      <Button type="submit" look="primary" isBusy={signIn.isPending}>
        Sign in
      </Button>
    </SignInForm>
  );
}

function OtherWays() {
  return (
    <>
      <Link href="/sign-in/provider">Sign in with an identity provider</Link>
      <br />
      Invited, or new here? <Link href="/sign-up">Create an account</Link>
      <br />
      Locked out? Ask the operator for a link: <code>svc user link</code>
    </>
  );
}
