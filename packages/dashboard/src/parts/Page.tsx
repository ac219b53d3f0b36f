import { showLine } from '@svc/contract/visible';
import { useEffect, type ReactNode } from 'react';

interface PageProps {
  readonly title: string;
  /** A state beside the title. */
  readonly mark?: ReactNode;
  readonly hint?: ReactNode;
  /** The actions of the whole page. */
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

/** The frame of every page: heading, actions and content. */
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
