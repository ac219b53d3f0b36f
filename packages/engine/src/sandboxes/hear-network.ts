import type { NetworkReport } from '../egress/egress-messages.ts';
import type { Kit } from './kit.ts';
import type { Sandbox } from './sandbox.ts';

/** Tells of what sandboxes tried and were kept from, and ends those that are to end for it. */
export function hearNetwork(kit: Kit, list: () => readonly Sandbox[]): void {
  kit.network.onReport = (key, report) => {
    const sandbox = list().find(({ run }) => run?.slot.key === key);
    if (sandbox === undefined) return;
    const { id } = sandbox.record;
    const details = detailsOf(report);
    kit.events.add(
      report.kind === 'refusal' ? 'policy_denied' : 'secret_violation',
      id,
      JSON.stringify(details),
    );
    if (report.kind === 'refusal' || report.violation.action === 'block') return;
    kit.logger.warn({ id, ...details }, 'A request with the placeholder of a secret was stopped');
    if (report.violation.action === 'block_and_terminate')
      sandbox
        .stop({ graceMs: 0, reason: 'secret_violation' })
        .catch((error: unknown) => kit.logger.error({ error, id }, 'could not end the sandbox'));
  };
}

/** No value, no query and no header is part of it. */
function detailsOf(report: NetworkReport) {
  if (report.kind === 'violation') {
    const { action, method, host, path, envVars } = report.violation;
    return { action, method, host, path, env_vars: envVars };
  }
  const { destination, name, reason } = report.refusal;
  return { host: destination.address, port: destination.port, protocol: 'tcp', name, why: reason };
}
