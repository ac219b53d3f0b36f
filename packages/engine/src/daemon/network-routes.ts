import { PlatformError } from '@svc/contract/errors';
import type { ExplainNetwork } from '../client/engine-api.ts';
import { explain } from '../policy/explain.ts';
import type { Protocol } from '../policy/resolve-policy.ts';
import type { Kit } from '../sandboxes/kit.ts';
import type { Sandboxes } from '../sandboxes/sandboxes.ts';
import { fields, optional, readId, readSecretValues, required } from './fields.ts';
import type { Routes } from './http-server.ts';

/** What is asked and changed about the network of a sandbox. */
export function networkRoutes({ network }: Pick<Kit, 'network'>, sandboxes: Sandboxes): Routes {
  return {
    'PUT /sandboxes/:id/network': async (call) => {
      const { secretValues: given, ...change } = fields(await call.json());
      const secretValues = readSecretValues(given);
      const unknown = Object.keys(change).find((name) => !CHANGEABLE.has(name));
      if (unknown !== undefined) throw invalid(unknown, 'cannot be changed; make another sandbox');
      return await sandboxes.setNetwork(call.params['id'] ?? '', { ...change, secretValues });
    },
    'POST /network/explain': async (call) => {
      const { id, network: planned, ...question } = readExplain(await call.json());
      const sandbox = sandboxes.list().find(({ record }) => record.id === id);
      const { surroundings, known } = await network.outlook(sandbox?.run?.slot ?? null);
      const asked = sandbox === undefined ? planned : sandbox.record.spec.network;
      return explain(asked, question, known, surroundings);
    },
  };
}

const CHANGEABLE: ReadonlySet<string> = new Set([
  'policy',
  'dns',
  'strict',
  'max_connections',
  'tls',
  'secrets',
]);
const PROTOCOLS: readonly Protocol[] = ['tcp', 'udp', 'icmpv4', 'icmpv6'];
const MAX_PORT = 65_535;

function readExplain(body: unknown): ExplainNetwork {
  const given = fields(body);
  const protocol = PROTOCOLS.find((known) => known === given['protocol']);
  if (protocol === undefined) throw invalid('protocol', `must be one of ${PROTOCOLS.join(', ')}`);
  const port = required(given, 'port', 'number');
  if (!Number.isInteger(port) || port < 0 || port > MAX_PORT)
    throw invalid('port', `must be a whole number from 0 to ${MAX_PORT}`);
  // Whoever keeps the plan has checked it.
  const network = optional(given, 'network', 'object');
  const question = { id: readId(given), host: required(given, 'host', 'string'), port, protocol };
  return network === undefined ? question : { ...question, network };
}

function invalid(field: string, reason: string): PlatformError {
  return new PlatformError('invalid_request', `${field}: ${reason}`, { details: { field } });
}
