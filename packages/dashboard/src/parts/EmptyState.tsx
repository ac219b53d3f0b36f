import type { ReactNode } from 'react';
import { Icon, type IconName } from './Icon.tsx';

interface EmptyStateProps {
  readonly icon: IconName;
  /** What is missing. */
  readonly title: string;
  /** What to do about it. */
  readonly children: ReactNode;
}

export function EmptyState({ icon, title, children }: EmptyStateProps) {
  return (
    <div className="empty">
      <span className="empty-mark">
        <Icon name={icon} />
      </span>
      <h2>{title}</h2>
      <div className="empty-text">{children}</div>
    </div>
  );
}
