import type { EndReason } from '../client/engine-api.ts';
import type { EngineRecord } from './record.ts';
import type { RunEnd } from './run.ts';
import { limitsOf } from './limits-of.ts';

export type RunOutcome = RunEnd | { readonly by: 'request'; readonly reason: EndReason };

/** Says why a run ended, in a code and in a sentence: no death is a mystery. */
export function describeEnd(
  outcome: RunOutcome,
  record: EngineRecord,
): { reason: EndReason; message: string; exitCode: number | null } {
  if (outcome.by === 'request')
    return { reason: outcome.reason, message: sentence(outcome.reason, record), exitCode: null };
  if (outcome.by === 'death') {
    const reason = outcome.outOfMemory ? 'oom' : 'crashed';
    return { reason, message: sentence(reason, record), exitCode: null };
  }
  const { code, signal, reason } = outcome.state;
  if (reason === 'oom') return { reason: 'oom', message: sentence('oom', record), exitCode: 137 };
  if (signal !== null) {
    return {
      reason: 'exited',
      message: `the main process was ended by signal ${signal}`,
      exitCode: 128 + signal,
    };
  }
  return { reason: 'exited', message: `the main process exited with code ${code ?? 0}`, exitCode: code ?? 0 };
}

/** Whether a run that ended so leaves a sandbox `stopped` rather than `failed`. */
export function isClean({
  reason,
  exitCode,
}: {
  readonly reason: EndReason;
  readonly exitCode: number | null;
}): boolean {
  if (reason === 'exited') return exitCode === 0;
  return reason === 'stopped' || reason === 'idle_timeout' || reason === 'max_duration';
}

function sentence(reason: EndReason, { spec, runtime }: EngineRecord): string {
  const sentences: Record<EndReason, string> = {
    stopped: 'stopped on request',
    exited: 'the main process exited',
    oom: `out of memory: more than ${limitsOf(spec).memoryMib} MiB were needed; raise resources.memory_mib`,
    crashed: `the sandbox ended unexpectedly (${runtime})`,
    start_failed: 'the start failed',
    idle_timeout: `idle for ${spec.lifecycle?.idle_timeout_secs ?? 0} s (lifecycle.idle_timeout_secs)`,
    max_duration: `ran for ${spec.lifecycle?.max_duration_secs ?? 0} s (lifecycle.max_duration_secs)`,
    secret_violation:
      'a request with the placeholder of a secret went to a host that may not have it (block_and_terminate)',
    host_restart: 'the host was restarted while the sandbox ran; start it again',
  };
  return sentences[reason];
}
