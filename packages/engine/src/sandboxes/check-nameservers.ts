import type { Network } from '@svc/contract';
import { PlatformError } from '@svc/contract/errors';
import type { HostNetworks } from '../policy/groups.ts';
import { isNowhere, mayAsk } from '../policy/nameservers.ts';
import { resolvePolicy } from '../policy/resolve-policy.ts';

/** Refuses nameservers that the policy beside them does not let the sandbox reach, over UDP or TCP. */
export async function checkNameservers(
  network: Network | undefined,
  readHostNetworks: () => Promise<HostNetworks>,
): Promise<void> {
  if ((network?.dns?.nameservers ?? []).length === 0) return;
  const policy = resolvePolicy(network);
  const hostNetworks = await readHostNetworks();
  for (const [index, nameserver] of policy.dns.nameservers.entries()) {
    if (PROTOCOLS.some((protocol) => mayAsk(policy, nameserver, protocol, hostNetworks))) continue;
    const field = `network.dns.nameservers[${index}]`;
    const { address, port } = nameserver;
    const reason = isNowhere(address, hostNetworks)
      ? `${address} is asked from the host and no policy opens it; name an address of another host`
      : `network.policy does not allow ${address} at port ${port}; name a public address, or add a rule that allows it to udp and tcp`;
    throw new PlatformError('invalid_sandbox_config', `${field}: ${reason}`, { details: { field, reason } });
  }
}

const PROTOCOLS = ['udp', 'tcp'] as const;
