import { Type } from '../schema/type.ts';
import { NetworkChange, NetworkRule } from '../spec/network.ts';
import { strictObject } from '../spec/strict.ts';
import { NO_FIELDS, nullable, Uuid } from './fields.ts';
import type { RestOperation } from './rest-operation.ts';
import { Sandbox } from './sandbox-fields.ts';

const Action = Type.Enum(['allow', 'deny']);
const DecidedBy = Type.Enum(
  ['rule', 'default', 'no_network', 'name', 'resolver', 'closed_port', 'out_of_reach'],
  {
    description:
      "`name`: the name may not be asked for; `resolver`: port 53 is answered by the sandbox's own resolver; `closed_port`: a way to " +
      'resolve names past it; `out_of_reach`: an address that no rule opens',
  },
);

const Explanation = strictObject({
  action: Action,
  decided_by: DecidedBy,
  rule: nullable(
    strictObject({
      index: Type.Integer({
        description: 'In network.policy.rules, from 0; of the default policy when it has none',
      }),
      rule: NetworkRule,
    }),
  ),
  by_name: Type.Boolean({ description: 'The rule is about a name' }),
  reason: Type.String({ description: 'A sentence' }),
  addresses: Type.Array(
    strictObject({
      address: Type.String(),
      group: nullable(Type.String()),
      action: Action,
      rule: nullable(Type.Integer()),
      decided_by: DecidedBy,
    }),
    {
      description:
        'What this sandbox has resolved the name to, or the address itself; each as it would be judged',
    },
  ),
  assumed: Type.Boolean({
    description: 'The sandbox has not resolved the name; it was judged as if it led to some public address',
  }),
});

const COMMON = {
  tag: 'sandboxes',
  audience: 'both',
  role: 'member',
  params: strictObject({ sandbox_id: Uuid }),
  query: NO_FIELDS,
  headers: NO_FIELDS,
  status: 200,
} as const;

export const networkOperations = {
  'network.update': {
    ...COMMON,
    summary:
      'Change what a sandbox may reach, at once and for its next runs; connections that are denied now end',
    method: 'PATCH',
    path: '/sandboxes/{sandbox_id}/network',
    body: NetworkChange,
    output: Sandbox,
    errors: [
      'sandbox_not_found',
      'invalid_sandbox_config',
      'precondition_failed',
      'orchestrator_unreachable',
    ],
  },
  'network.explain': {
    ...COMMON,
    summary: 'Say which rule decides about a connection of a sandbox, and why',
    method: 'POST',
    path: '/sandboxes/{sandbox_id}/network/explain',
    body: strictObject({
      host: Type.String({ minLength: 1, maxLength: 253, description: 'A name or an address' }),
      port: Type.Optional(
        Type.Integer({ minimum: 0, maximum: 65_535, default: 0, description: 'Needed for tcp and udp' }),
      ),
      protocol: Type.Optional(Type.Enum(['tcp', 'udp', 'icmpv4', 'icmpv6'], { default: 'tcp' })),
    }),
    output: Explanation,
    errors: ['sandbox_not_found', 'orchestrator_unreachable'],
  },
} as const satisfies Record<string, RestOperation>;
