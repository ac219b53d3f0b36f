import { showLine } from '@svc/contract/visible';
import { useEffect, type ReactNode } from 'react';
import { Form } from '../../parts/Form.tsx';

interface SignInFormProps {
  readonly title: string;
  readonly hint?: ReactNode;
  readonly foot?: ReactNode;
  readonly error: unknown;
  readonly onSubmit: () => void;
  readonly children: ReactNode;
}

/** The page of a visitor who is not signed in: one small form. */
export function SignInForm({ title, hint, foot, error, onSubmit, children }: SignInFormProps) {
  useEffect(() => {
    document.title = showLine(`${title} · svc`);
  }, [title]);
  return (
    <main className="sign-in">
      <p className="brand">
        <svg className="mark" viewBox="0 0 24 24" width="30" height="30" aria-hidden="true">
          <path d="M3 8 12 3.500 21 8v8.500L12 21l-9-4.500zM3 8l9 4.500L21 8M12 12.500V21" />
        </svg>
        svc
      </p>
      <Form className="panel sign-in-panel" error={error} onSubmit={onSubmit}>
        <h1>{title}</h1>
        {hint === undefined ? null : <p className="hint">{hint}</p>}
        {children}
      </Form>
      {foot === undefined ? null : <p className="sign-in-foot">{foot}</p>}
    </main>
  );
}
