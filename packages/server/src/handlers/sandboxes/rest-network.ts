import type { Orchestrator } from '../../orchestrator/orchestrator.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import type { Database } from '../../store/database.ts';
import { requireSandbox } from './rest-sandboxes.ts';

type NetworkHandlers = Pick<RestHandlers, Extract<keyof RestHandlers, `network.${string}`>>;

export interface NetworkParts {
  readonly database: Database;
  readonly orchestrator: Orchestrator;
}

export function networkHandlers({ database, orchestrator }: NetworkParts): NetworkHandlers {
  return {
    'network.explain': async ({ params, body }, call) => {
      const { id, spec } = await requireSandbox(database, call, { id: params.sandbox_id });
      const { host, port = 0, protocol = 'tcp' } = body;
      const planned = spec.network === undefined ? {} : { network: spec.network };
      const answer = await orchestrator.explainNetwork({ id, ...planned, host, port, protocol }, call.signal);
      const { action, decidedBy, rule, isByName, reason, addresses, isAssumed } = answer;
      return {
        action,
        decided_by: decidedBy,
        rule,
        by_name: isByName,
        reason,
        addresses: addresses.map(({ decidedBy: by, ...address }) => ({ ...address, decided_by: by })),
        assumed: isAssumed,
      };
    },
  };
}
