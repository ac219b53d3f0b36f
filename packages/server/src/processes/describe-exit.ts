import { constants } from 'node:os';
import type { DetachedState } from '@svc/contract';
import type { RunRow } from '../store/database.ts';
import type { Actor } from '../store/events.ts';
import type { ProcessExit } from '../store/processes.ts';
import type { EventCaller } from '../store/sandboxes.ts';

type DetachedEnd = NonNullable<DetachedState['end']>;
/** An end that the sandbox can explain without the server. */
export type OwnEnd = DetachedEnd & { readonly reason: Exclude<DetachedEnd['reason'], 'shutdown'> };

/** A process that ended because its sandbox did has the sandbox's reason, which is known only when the run is over. */
export function isOwnEnd(end: DetachedEnd): end is OwnEnd {
  return end.reason !== 'shutdown';
}

/** What the sandbox says about the end of a process, in a code and in a sentence. */
export function describeExit({ code, signal, reason, by }: OwnEnd): ProcessExit {
  const name = signal === null ? null : signalName(signal);
  const sentences = {
    exit: `it exited with code ${code ?? 0}`,
    signal: `${name ?? 'a signal'} ended it, sent by another process of the sandbox or by the kernel`,
    oom: 'the kernel ended it because the sandbox ran out of memory; raise resources.memory_mib',
    pids: `it exited with code ${code ?? 0} after the sandbox had reached its limit of processes`,
    disk_full:
      'it failed while the disk of the sandbox was full; remove files or raise resources.disk_size_mib',
    output_limit: 'it wrote more than its max_output_bytes',
    timeout: 'it ran longer than its timeout_secs',
    killed_by: `${name ?? 'a signal'}, sent by ${by ?? 'an unknown caller'}, ended it`,
  } satisfies Record<OwnEnd['reason'], string>;
  const killedBy = reason === 'killed_by' ? by : null;
  return { code, signal: name, reason, killedBy, message: sentences[reason] };
}

/** The exit of a process that was last seen running when its sandbox ended. */
export function describeEndWithRun(
  { end_reason: why }: RunRow,
  requestedBy: EventCaller | null,
): ProcessExit {
  const end = { code: null, signal: null, killedBy: null };
  if (why === 'idle_timeout')
    return { ...end, reason: 'idle', message: 'its sandbox was stopped because it was idle' };
  if (why === 'max_duration')
    return { ...end, reason: 'max_duration', message: 'its sandbox had run for as long as it may' };
  if (why === 'oom')
    return { ...end, reason: 'oom', message: 'its sandbox ran out of memory; raise resources.memory_mib' };
  if (why === 'exited') {
    const message = 'the main process of its sandbox exited, which ends all others';
    return { ...end, reason: 'killed_by', killedBy: 'the main process', message };
  }
  if (why === 'stopped' || why === 'removed') {
    const killedBy = requestedBy === null ? 'the service' : labelOf(requestedBy.actor);
    return { ...end, reason: 'killed_by', killedBy, message: `its sandbox was ${why} by ${killedBy}` };
  }
  const message = 'its sandbox was lost with its host, or ended unexpectedly';
  return { ...end, reason: 'host_lost', message };
}

/** It is in none of the sandbox's lists although the sandbox runs on. */
export const UNSEEN_END: ProcessExit = {
  code: null,
  signal: null,
  reason: 'host_lost',
  killedBy: null,
  message: 'it ended, and its exit was not observed',
};

export function labelOf(actor: Actor): string {
  if (actor.kind === 'api_key') return `API key ${actor.name}`;
  return actor.kind === 'ssh_key' ? (actor.label ?? actor.fingerprint) : actor.label;
}

/** Undefined when there is no such signal. */
export function signalNumber(signal: number | string): number | undefined {
  if (typeof signal === 'number') return signal;
  const name = signal.startsWith('SIG') ? signal : `SIG${signal}`;
  return Object.entries(constants.signals).find(([known]) => known === name)?.[1];
}

function signalName(number: number): string {
  return Object.entries(constants.signals).find(([, known]) => known === number)?.[0] ?? `signal ${number}`;
}
