import { isDeepStrictEqual } from 'node:util';
import type { Network, NetworkChange } from '@svc/contract';
import type { SandboxReport } from '@svc/contract/orchestrator';
import { resolvePolicy } from '@svc/engine/policy';
import { lifecycleOf } from '../orchestrator/lifecycle-of.ts';
import type { SandboxRecord } from '../store/sandboxes.ts';
import { isUnannounced } from './announce-end.ts';
import { withoutSources } from './sandbox-secrets.ts';

/**
 * The next step towards the desired state.
 * - `note`: the sandbox is in its desired state, or ended without a request; store what was observed.
 * - `start`: it should run and does not; the start is new or was interrupted.
 * - `stop`, `remove`: it should be stopped or removed and is not.
 * - `lost`: it ran, and the orchestrator does not know it any more.
 */
export type Decision = 'note' | 'start' | 'stop' | 'remove' | 'lost' | 'nothing';

type Wanted = Pick<SandboxRecord, 'desired' | 'observed'>;
type Seen = Pick<SandboxReport, 'state'> | undefined;

export function decide(record: Wanted, report: Seen): Decision {
  if (record.desired === 'removed') return report === undefined ? 'nothing' : 'remove';
  if (record.desired === 'stopped') return decideStopped(record, report);
  // The next run begins after the end of this one was stored.
  if (record.desired === 'restarted') {
    if (isActive(report)) return 'stop';
    return report === undefined ? 'lost' : 'note';
  }
  return decideRunning(record, report);
}

function decideRunning({ observed }: Wanted, report: Seen): Decision {
  const isYetToRun = observed === 'starting';
  if (report === undefined) return isYetToRun ? 'start' : 'lost';
  // It runs, and no caller has chosen yet how to recover it.
  if (observed === 'recovery_decision_required' && isActive(report)) return 'nothing';
  return isYetToRun && !isActive(report) ? 'start' : 'note';
}

function decideStopped({ observed }: Wanted, report: Seen): Decision {
  if (isActive(report)) return 'stop';
  const isKnownToRest = observed === 'created' || observed === 'stopped' || observed === 'failed';
  if (isKnownToRest) return 'nothing';
  return report === undefined ? 'lost' : 'note';
}

function isActive(report: Seen): boolean {
  return report !== undefined && ['starting', 'running', 'stopping'].includes(report.state);
}

/** Whether a change of its network is stored and not applied yet. */
export function isNetworkStale({ spec }: SandboxRecord, { network }: SandboxReport): boolean {
  if (network === undefined) return false;
  if (!isDeepStrictEqual(resolvePolicy(spec.network), resolvePolicy(network))) return true;
  const { tls, secrets } = changeOf({ spec: withHostsOf(spec, network) }, { network });
  return tls !== undefined || secrets !== undefined;
}

/**
 * Ignores the hosts of secrets from the store, which the store determines: a change of them marks the sandbox for new values, and its
 * hosts are sent with these.
 */
function withHostsOf(spec: SandboxRecord['spec'], held: Network): SandboxRecord['spec'] {
  const secrets = spec.network?.secrets ?? null;
  if (secrets === null) return spec;
  const known = new Map((held.secrets?.entries ?? []).map((entry) => [entry.env_var, entry.allowed_hosts]));
  const entries = secrets.entries.map((entry) =>
    (entry.source ?? null) === null
      ? entry
      : { ...entry, allowed_hosts: known.get(entry.env_var) ?? entry.allowed_hosts },
  );
  return { ...spec, network: { ...spec.network, secrets: { ...secrets, entries } } };
}

/**
 * The network update that brings a sandbox to its record. TLS and secrets are included only where they differ, because an absent field
 * keeps its value.
 */
export function changeOf(
  { spec }: Pick<SandboxRecord, 'spec'>,
  { network }: Pick<SandboxReport, 'network'>,
): NetworkChange {
  const { tls, secrets, enabled: _, interface: __, trust_host_cas: ___, ...rest } = engineNetworkOf(spec);
  const isOtherTls = !isDeepStrictEqual(tls ?? null, network?.tls ?? null);
  const isOther = !isDeepStrictEqual(secretsIn(secrets), secretsIn(network?.secrets));
  return {
    ...rest,
    ...(isOtherTls ? { tls: tls ?? null } : {}),
    ...(isOther ? { secrets: secretsIn(secrets) } : {}),
  };
}

function engineNetworkOf(spec: SandboxRecord['spec']): Network {
  return withoutSources(spec).network ?? {};
}

/** Null: no secrets, in each of its notations. */
function secretsIn(secrets: Network['secrets'] | undefined): NonNullable<Network['secrets']> | null {
  return (secrets?.entries ?? []).length === 0 ? null : (secrets ?? null);
}

/** Whether a change of its lifetime is stored and not applied yet. */
export function isLifecycleStale({ spec }: SandboxRecord, { lifecycle }: SandboxReport): boolean {
  return lifecycle !== undefined && !isDeepStrictEqual(lifecycleOf(spec), lifecycle);
}

/** Whether the record already says what the orchestrator reports of a sandbox in its desired state. */
export function isNoted(record: SandboxRecord, report: SandboxReport | undefined): boolean {
  return (
    report?.state === 'running' &&
    record.observed === 'running' &&
    record.desired === 'running' &&
    record.startedAt === report.startedAt &&
    (record.resolved !== null || report.resolved === null) &&
    record.valuesDue === null &&
    !isNetworkStale(record, report) &&
    !isLifecycleStale(record, report) &&
    !isUnannounced(record, report)
  );
}
