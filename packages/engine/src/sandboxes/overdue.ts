import type { Sandbox } from './sandbox.ts';

/** Why a sandbox that runs has run long enough; undefined when it has not. */
export function overdue(sandbox: Sandbox, now: number): 'max_duration' | 'idle_timeout' | undefined {
  const { record, run } = sandbox;
  if (record.state !== 'running' || run === undefined || record.run === null) return undefined;
  const { max_duration_secs: max, idle_timeout_secs: idle } = record.spec.lifecycle ?? {};
  if (typeof max === 'number' && now - Date.parse(record.run.startedAt) >= max * 1000) return 'max_duration';
  return typeof idle === 'number' && run.idleMs() >= idle * 1000 ? 'idle_timeout' : undefined;
}
