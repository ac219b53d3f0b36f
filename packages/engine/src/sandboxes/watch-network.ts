import type { NetworkDecision } from '@svc/contract/orchestrator';
import { ruleAt, sentence } from '../policy/sentence.ts';
import type { Kit } from './kit.ts';
import type { Sandbox } from './sandbox.ts';

type WatchKit = Pick<Kit, 'events' | 'logger'>;

/** Logs network decisions of sandboxes, reports denials to them, and ends sandboxes whose policy asks for that. */
export function watchNetwork(kit: Kit, list: () => readonly Sandbox[]): void {
  kit.network.onReport = (key, { decisions, leftOut }) => {
    // A sandbox that is being stopped has its slot only in the record.
    const sandbox = list().find(({ run, record }) => (run?.slot ?? record.run?.slot)?.key === key);
    // Sandboxes in the pool belong to no caller yet.
    if (sandbox === undefined || sandbox.record.id === null) return;
    for (const { decision, count } of decisions) noteDecision(kit, sandbox, decision, count);
    sandbox.networkLog.leaveOut(leftOut);
  };
}

export function noteDecision(
  kit: WatchKit,
  sandbox: Sandbox,
  decision: NetworkDecision,
  count: number,
): void {
  const { id, spec } = sandbox.record;
  const reason = reasonOf(spec.network, decision);
  const isFresh = sandbox.networkLog.note(decision, reason, count);
  const details = detailsOf(decision, reason);
  if (decision.verdict === 'deny' && isFresh)
    kit.events.add(
      decision.secret === undefined ? 'policy_denied' : 'secret_violation',
      id,
      JSON.stringify(details),
    );
  const { action = 'block' } = decision.secret ?? {};
  if (action === 'block') return;
  kit.logger.warn({ id, ...details }, 'A request with the placeholder of a secret was stopped');
  if (action === 'block_and_terminate')
    sandbox
      .stop({ graceMs: 0, reason: 'secret_violation' })
      .catch((error: unknown) => kit.logger.error({ error, id }, 'could not end the sandbox'));
}

/** The reason as `explain` words it. */
function reasonOf(network: Parameters<typeof ruleAt>[0], decision: NetworkDecision): string {
  const { kind, verdict: action, host, address, port, protocol, decidedBy, rule } = decision;
  return sentence({
    action,
    decidedBy,
    rule: ruleAt(network, rule),
    direction: kind === 'ingress' ? 'ingress' : 'egress',
    host: host ?? address ?? 'it',
    port,
    protocol: kind === 'dns' ? null : protocol,
    address,
  });
}

/** The details never contain a secret's value, a query or a header. */
function detailsOf({ secret, ...decision }: NetworkDecision, reason: string) {
  const { kind, host, address, port, protocol, decidedBy, rule } = decision;
  if (secret === undefined)
    return { kind, host, address, port, protocol, decided_by: decidedBy, rule, reason };
  const { action, method, path, envVars } = secret;
  return { action, method, host, path, env_vars: envVars };
}
