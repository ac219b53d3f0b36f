import { showLine } from '@svc/contract/visible';
import { useEffect, type ReactNode } from 'react';

interface PageProps {
  readonly title: string;
  /** Beside the title: a state. */
  readonly mark?: ReactNode;
  readonly hint?: ReactNode;
  /** What can be done with all of it. */
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

/** The frame of every page: its one heading, what can be done, and what it shows. */
export function Page({ title, mark, hint, actions, children }: PageProps) {
  useEffect(() => {
    document.title = showLine(`${title} · svc`);
  }, [title]);
  return (
    <>
      <header className="page-head">
        <div className="page-title">
          <h1>{title}</h1>
          {mark}
        </div>
        {hint === undefined ? null : <p className="hint">{hint}</p>}
        {actions === undefined ? null : <div className="actions">{actions}</div>}
      </header>
      {children}
    </>
  );
}
