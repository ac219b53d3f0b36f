import type { ReactNode } from 'react';
interface PanelProps {
  readonly title?: string;
  readonly hint?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
  /** The content has no padding: a table, a terminal. */
  readonly isFlush?: boolean;
}

/** A part of a page with a heading of its own. */
export function Panel({ title, hint, actions, children, isFlush = false }: PanelProps) {
  return (
    <section className={isFlush ? 'panel flush' : 'panel'} aria-label={title}>
      {title === undefined && actions === undefined ? null : (
        <header className="panel-head">
          <div>
            {title === undefined ? null : <h2>{title}</h2>}
            {hint === undefined ? null : <p className="hint">{hint}</p>}
          </div>
          {actions === undefined ? null : <div className="actions">{actions}</div>}
        </header>
      )}
      <div className="panel-body">{children}</div>
    </section>
  );
}
