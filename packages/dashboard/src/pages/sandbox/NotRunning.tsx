import { EmptyState } from '../../parts/EmptyState.tsx';
import type { IconName } from '../../parts/Icon.tsx';

interface NotRunningProps {
  readonly icon: IconName;
  readonly what: string;
}

/** Shown in place of views that need a running sandbox. */
export function NotRunning({ icon, what }: NotRunningProps) {
  return (
    <EmptyState icon={icon} title="Not running">
      <p>{what} Start it with the button above.</p>
    </EmptyState>
  );
}
