import { useState } from 'react';
import { useAction } from '../../api/use-call.ts';
import { EmailField, SecondFactorField } from '../../parts/AccountFields.tsx';
import { Button } from '../../parts/Button.tsx';
import { TextField } from '../../parts/Field.tsx';
import { FormFailure } from '../../parts/Form.tsx';
import { Link } from '../../router/Link.tsx';
import { Door } from './Door.tsx';
import { LinkSignIn } from './LinkSignIn.tsx';

import { useSecret } from './use-secret.ts';
import { useSignedIn } from './use-signed-in.ts';
import { wantsCode } from './wants-code.ts';

export function SignInPage() {
  const link = useSecret('link');
  return link === null ? <PasswordSignIn /> : <LinkSignIn token={link} />;
}

function PasswordSignIn() {
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const [code, setCode] = useState('');
  const [needsCode, setNeedsCode] = useState(false);
  const signedIn = useSignedIn();
  const signIn = useAction('session.create', { onDone: () => void signedIn() });
  const submit = (): void => {
    const body = { email: email.trim(), password, ...(needsCode && code !== '' ? { code } : {}) };
    signIn.mutate({ body }, { onError: (error) => setNeedsCode(needsCode || wantsCode(error)) });
  };
  // That a code is needed is no failure: it is the next step.
  const isFirstAsk = wantsCode(signIn.error) && code === '';
  return (
    <Door title="Sign in" error={isFirstAsk ? null : signIn.error} onSubmit={submit} foot={<OtherWays />}>
      <EmailField value={email} onChange={setEmail} />
      <TextField
        label="Password"
        field="password"
        type="password"
        autoComplete="current-password"
        required
        value={password}
        onChange={setPassword}
      />
      {needsCode ? <SecondFactorField value={code} onChange={setCode} /> : null}
      <FormFailure />
      <Button type="submit" look="primary" isBusy={signIn.isPending}>
        Sign in
      </Button>
    </Door>
  );
}

function OtherWays() {
  return (
    <>
      <Link href="/sign-in/provider">Sign in at your organization&apos;s provider</Link>
      <br />
      Invited, or new here? <Link href="/sign-up">Make an account</Link>
      <br />
      Locked out? The operator has <code>svc user link</code>
    </>
  );
}
