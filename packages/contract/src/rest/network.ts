import { Type } from '../schema/type.ts';
import { NetworkChangeRequest, NetworkRule } from '../spec/network.ts';
import { strictObject } from '../spec/strict.ts';
import { NO_FIELDS, nullable, pageFields, Timestamp, Uuid } from './fields.ts';
import { EVENT_STREAM, type RestOperation } from './rest-operation.ts';
import { Sandbox } from './sandbox-fields.ts';

const DEFAULT_LOG_PAGE = 100;
const MAX_LOG_PAGE = 1000;
const Action = Type.Enum(['allow', 'deny']);
const Protocol = Type.Enum(['tcp', 'udp', 'icmpv4', 'icmpv6']);
const DECIDED_BY = [
  'rule',
  'default',
  'no_network',
  'name',
  'resolver',
  'closed_port',
  'out_of_reach',
  'ceiling',
  'quic',
] as const;
const DECIDED_BY_WORDS =
  "`name`: the name may not be asked for; `resolver`: port 53 is answered by the sandbox's own resolver; `closed_port`: a way to " +
  'resolve names past it; `out_of_reach`: an address that no rule opens; `ceiling`: beyond what the operator lets sandboxes reach; `quic`: a port that is read, closed to UDP';
const DecidedBy = Type.Enum([...DECIDED_BY], { description: DECIDED_BY_WORDS });

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
  secrets: Type.Array(
    strictObject({
      env_var: Type.String(),
      action: Type.Enum(['substitute', 'leave', 'block', 'block_and_log', 'block_and_terminate']),
    }),
    {
      description:
        'What becomes of the placeholder of each secret in a request to that host, if the connection is read: the value takes its place, ' +
        'it is left as it is, or the request is stopped. Of a host that proves its name',
    },
  ),
});

const Verdict = Type.Optional(
  Type.Enum(['allow', 'deny'], { description: 'Only entries with this verdict; all unless given' }),
);

const NetworkLogEntry = strictObject({
  cursor: Type.String({
    description: 'Hand it back to read on behind this entry. What happens again gets another',
  }),
  first_ts: Timestamp,
  ts: Timestamp,
  count: Type.Integer({
    description: 'Packets, questions, connections or requests, from `first_ts` to `ts`',
  }),
  kind: Type.Enum(['dns', 'tcp', 'udp', 'icmp', 'tls', 'http', 'ingress'], {
    description:
      'tcp, udp, icmp: packets, and connections that say nothing; dns: questions; tls, http: what the proxy reads; ingress: connections from outside ' +
      'through a published port',
  }),
  verdict: Action,
  host: nullable(Type.String(), { description: 'The name that was asked for or said' }),
  address: nullable(Type.String(), { description: 'Of the peer' }),
  port: nullable(Type.Integer(), { description: 'Of the peer; for ingress the one inside' }),
  protocol: Protocol,
  decided_by: Type.Enum(
    [
      ...DECIDED_BY,
      'too_many_connections',
      'too_many_questions',
      'no_proxy',
      'rebind_protection',
      'secret',
      'not_readable',
      'not_one_host',
      'malformed',
      'upstream_unreachable',
      'upstream_not_verified',
    ],
    { description: `As in an explanation, and what shows only when it happens. ${DECIDED_BY_WORDS}` },
  ),
  rule: nullable(Type.Integer(), { description: 'In network.policy.rules of that moment, from 0' }),
  reason: Type.String({ description: 'A sentence, in the words of an explanation' }),
  secret: nullable(
    strictObject({
      action: Type.String(),
      method: Type.String(),
      path: Type.String({ description: 'Without its query' }),
      env_vars: Type.Array(Type.String(), { description: 'Whose placeholders were seen' }),
    }),
    { description: 'Of a request that was stopped for a secret' },
  ),
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
    body: NetworkChangeRequest,
    output: Sandbox,
    errors: [
      'sandbox_not_found',
      'invalid_sandbox_config',
      'network_ceiling_exceeded',
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
      direction: Type.Optional(
        Type.Enum(['egress', 'ingress'], {
          default: 'egress',
          description:
            'With ingress: whether `host`, an address, may come in through a published port; `port` is the one inside',
        }),
      ),
    }),
    output: Explanation,
    errors: ['sandbox_not_found', 'orchestrator_unreachable'],
  },
  'network.log': {
    ...COMMON,
    summary:
      'Read what was decided about the network of a sandbox, oldest first: what was denied, and samples of what was allowed',
    method: 'GET',
    path: '/sandboxes/{sandbox_id}/network/log',
    body: null,
    query: strictObject({
      verdict: Verdict,
      cursor: Type.Optional(Type.String({ maxLength: 64, description: 'Read on behind this entry' })),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_LOG_PAGE, default: DEFAULT_LOG_PAGE })),
    }),
    output: strictObject({
      ...pageFields(NetworkLogEntry),
      left_out: Type.Integer({
        description:
          'How much more was denied and is in no entry, since a sandbox can be denied any number of things',
      }),
    }),
    errors: ['sandbox_not_found', 'invalid_cursor', 'orchestrator_unreachable'],
  },
  'network.follow': {
    ...COMMON,
    summary:
      'Stream what is decided about the network of a sandbox: events `decision`, and `left_out` when more was denied than is shown; then `end` when the run is over',
    method: 'GET',
    path: '/sandboxes/{sandbox_id}/network/log/stream',
    body: null,
    query: strictObject({ verdict: Verdict }),
    headers: strictObject({
      'last-event-id': Type.Optional(
        Type.String({
          maxLength: 64,
          description: 'Id of the last event that was seen; the stream goes on behind it',
        }),
      ),
    }),
    output: EVENT_STREAM,
    errors: ['sandbox_not_found', 'invalid_cursor', 'orchestrator_unreachable'],
  },
} as const satisfies Record<string, RestOperation>;
