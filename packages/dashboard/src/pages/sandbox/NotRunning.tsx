import { EmptyState } from '../../parts/EmptyState.tsx';
import type { IconName } from '../../parts/Icon.tsx';

interface NotRunningProps {
  readonly icon: IconName;
  readonly what: string;
}

/** In place of what only a running sandbox has. */
export function NotRunning({ icon, what }: NotRunningProps) {
  return (
    <EmptyState icon={icon} title="Not running">
      <p>{what} Start it with the button above.</p>
    </EmptyState>
  );
}
