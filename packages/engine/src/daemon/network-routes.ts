import { PlatformError } from '@svc/contract/errors';
import type {
  Direction,
  ExplainNetwork,
  Protocol,
  ReadNetworkLog,
  RefusedConnection,
  RefusedConnections,
} from '@svc/contract/orchestrator';
import { parseAddress } from '../policy/address.ts';
import { ceilingsOf } from '../policy/ceiling.ts';
import { explainNetwork } from '../sandboxes/explain-network.ts';
import { noteDecision } from '../sandboxes/watch-network.ts';
import type { Kit } from '../sandboxes/kit.ts';
import type { Sandboxes } from '../sandboxes/sandboxes.ts';
import { fields, optional, readId, readNetworkCeiling, readSecretValues, required } from './fields.ts';
import type { Call, Routes } from './http-server.ts';
import { sendLines } from './streams.ts';

/** Routes that read and change the network of a sandbox. */
export function networkRoutes(kit: Pick<Kit, 'network' | 'events' | 'logger'>, sandboxes: Sandboxes): Routes {
  const { network } = kit;
  const find = (call: Call) => sandboxes.get(call.params['id'] ?? '');
  return {
    'GET /sandboxes/:id/network/log': async (call) => {
      const options = readLogQuery(call.query);
      const sandbox = find(call);
      await network.denials.look();
      using _watching = options.follow === true ? network.denials.watch() : null;
      await sendLines(call.response, sandbox.readNetworkLog(options, call.signal));
      return undefined;
    },
    'POST /sandboxes/:id/network/log': async (call) => {
      const { connections, leftOut } = readRefused(await call.json());
      const sandbox = find(call);
      for (const { count, ...connection } of connections) {
        const decidedBy = connection.rule === null ? 'default' : 'rule';
        const decision = { kind: 'ingress', verdict: 'deny', host: null, decidedBy, ...connection } as const;
        noteDecision(kit, sandbox, decision, count);
      }
      sandbox.networkLog.leaveOut(leftOut);
      return {};
    },
    'PUT /sandboxes/:id/network': async (call) => {
      const { secretValues: given, networkCeiling, ...change } = fields(await call.json());
      const secretValues = readSecretValues(given);
      const ceiling = readNetworkCeiling({ networkCeiling });
      const unknown = Object.keys(change).find((name) => !CHANGEABLE.has(name));
      if (unknown !== undefined) throw invalid(unknown, 'cannot be changed; make another sandbox');
      return await sandboxes.setNetwork(call.params['id'] ?? '', { ...change, ...ceiling, secretValues });
    },
    'POST /network/explain': async (call) => {
      const { id, network: planned, networkCeiling: ceiling, ...question } = readExplain(await call.json());
      const sandbox = sandboxes.list().find(({ record }) => record.id === id);
      const decisionContext = await network.decisionContext(sandbox?.run?.slot ?? null);
      const asked = sandbox === undefined ? planned : sandbox.record.spec.network;
      const own = ceilingsOf(sandbox?.record.networkCeiling ?? ceiling);
      return explainNetwork(asked, question, decisionContext, [...network.ceilings, ...own]);
    },
  };
}

const CHANGEABLE: ReadonlySet<string> = new Set([
  'policy',
  'dns',
  'strict',
  'max_connections',
  'max_udp_connections',
  'tls',
  'secrets',
]);
function readLogQuery(query: URLSearchParams): ReadNetworkLog {
  const after = Number(query.get('after') ?? 0);
  if (!Number.isSafeInteger(after) || after < 0) throw invalid('after', 'must be the sequence of an entry');
  const verdict = query.get('verdict');
  if (verdict !== null && verdict !== 'allow' && verdict !== 'deny')
    throw invalid('verdict', 'must be allow or deny');
  return { after, follow: query.get('follow') === 'true', ...(verdict === null ? {} : { verdict }) };
}

function readRefused(body: unknown): RefusedConnections {
  const given = fields(body);
  const connections = given['connections'];
  if (!Array.isArray(connections)) throw invalid('connections', 'must be a list');
  return { connections: connections.map(readConnection), leftOut: readCount(given, 'leftOut') };
}

function readConnection(connection: unknown): RefusedConnection {
  const given = fields(connection);
  const address = required(given, 'address', 'string');
  if (parseAddress(address) === null) throw invalid('address', 'must be an address');
  const protocol = given['protocol'];
  if (protocol !== 'tcp' && protocol !== 'udp') throw invalid('protocol', 'must be tcp or udp');
  const rule = given['rule'] === null ? null : readCount(given, 'rule');
  return { address, port: readCount(given, 'port'), protocol, rule, count: readCount(given, 'count') };
}

function readCount(given: Record<string, unknown>, field: string): number {
  const count = required(given, field, 'number');
  if (Number.isSafeInteger(count) && count >= 0) return count;
  throw invalid(field, 'must be a whole number, not below 0');
}

const PROTOCOLS: readonly Protocol[] = ['tcp', 'udp', 'icmpv4', 'icmpv6'];
const DIRECTIONS: readonly Direction[] = ['egress', 'ingress'];
const MAX_PORT = 65_535;

function readExplain(body: unknown): ExplainNetwork {
  const given = fields(body);
  const protocol = PROTOCOLS.find((known) => known === given['protocol']);
  if (protocol === undefined) throw invalid('protocol', `must be one of ${PROTOCOLS.join(', ')}`);
  const port = required(given, 'port', 'number');
  if (!Number.isInteger(port) || port < 0 || port > MAX_PORT)
    throw invalid('port', `must be a whole number from 0 to ${MAX_PORT}`);
  // The plan was checked when it was stored.
  const network = optional(given, 'network', 'object');
  const asked = optional(given, 'direction', 'string') ?? 'egress';
  const direction = DIRECTIONS.find((known) => known === asked);
  if (direction === undefined) throw invalid('direction', `must be one of ${DIRECTIONS.join(', ')}`);
  const host = required(given, 'host', 'string');
  const question = { id: readId(given), direction, host, port, protocol, ...readNetworkCeiling(given) };
  return network === undefined ? question : { ...question, network };
}

function invalid(field: string, reason: string): PlatformError {
  return new PlatformError('invalid_request', `${field}: ${reason}`, { details: { field } });
}
