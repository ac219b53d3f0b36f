import type { Network } from '@svc/contract';
import type { NetworkExplanation, Question } from '@svc/contract/orchestrator';
import { actionFor } from '../egress/secrets/secret-settings.ts';
import type { DecisionContext } from '../network/network.ts';
import type { Ceiling } from '../policy/ceiling.ts';
import { parseAddress } from '../policy/address.ts';
import { explain } from '../policy/explain.ts';
import { normalizeName } from '../policy/names.ts';
import { interceptionOf } from './interception.ts';

/** Tells which rule decides about a connection, and whether each secret would be sent in a request over it. */
export function explainNetwork(
  network: Network | undefined,
  question: Question,
  { known, hostNetworks }: DecisionContext,
  ceilings: readonly Ceiling[] = [],
): NetworkExplanation {
  return {
    ...explain(network, question, known, hostNetworks, ceilings),
    secrets: secretsTowards(network, question),
  };
}

/** Lists the secrets for a host whose name is proved where TLS is read. Connections that are not read are not searched for placeholders. */
function secretsTowards(
  network: Network | undefined,
  { direction = 'egress', host, port, protocol }: Question,
): NetworkExplanation['secrets'] {
  const names = (network?.secrets?.entries ?? []).map(({ env_var: name }) => name);
  // Values are not needed here: it only matters whether a secret has one.
  const read = interceptionOf(network, Object.fromEntries(names.map((name) => [name, ''])));
  if (read === null || protocol !== 'tcp' || direction !== 'egress' || parseAddress(host) !== null) return [];
  const isProven = read.interceptedPorts.includes(port);
  if (!isProven && !read.readsPlainHttp) return [];
  const identity = { host: normalizeName(host), isPinned: true, isProven };
  return read.secrets.entries.map((secret) => ({
    envVar: secret.envVar,
    action: actionFor(secret, read.secrets, identity),
  }));
}
