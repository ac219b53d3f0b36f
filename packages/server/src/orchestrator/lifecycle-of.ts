import type { SandboxSpec } from '@svc/contract';
import type { LifecycleUpdate } from '@svc/contract/orchestrator';

/** How long a sandbox of this spec may run and be idle; null: without a limit. */
export function lifecycleOf({ lifecycle }: Pick<SandboxSpec, 'lifecycle'>): LifecycleUpdate {
  const { max_duration_secs = null, idle_timeout_secs = null } = lifecycle ?? {};
  return { max_duration_secs, idle_timeout_secs };
}
