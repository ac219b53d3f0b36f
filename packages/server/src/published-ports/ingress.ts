import { networkInterfaces } from 'node:os';
import type { Network } from '@svc/contract';
import { decide, parseAddress, resolvePolicy, type Surroundings } from '@svc/engine/policy';

/** Whether somebody at `source` may reach a port of a sandbox. */
export type MayEnter = (source: string, guestPort: number, protocol: 'tcp' | 'udp') => boolean;

/** What the policy of a sandbox says about who comes in through its published ports. */
export function ingressOf(network: Network | undefined): MayEnter {
  const policy = resolvePolicy(network);
  return (source, port, protocol) => {
    const address = parseAddress(source);
    // No rule can be about an address that we cannot read.
    if (address === null) return false;
    const flow = { direction: 'ingress', address, port, protocol, names: [] } as const;
    return decide(policy, flow, surroundings()).action === 'allow';
  };
}

/** As a published port sees this host: its own addresses, and the networks they are in. It knows no gateway and no other sandboxes. */
function surroundings(): Surroundings {
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const nowhere = { family: 4, value: 0n } as const;
  return {
    gateway: nowhere,
    pool: { ...nowhere, prefixLength: 32 },
    hostAddresses: own.flatMap(({ address }) => parseAddress(address) ?? []),
    neighbours: own.flatMap(({ address, cidr, internal }) => {
      const parsed = internal ? null : parseAddress(address);
      const prefixLength = Number(cidr?.split('/')[1]);
      return parsed === null || !Number.isInteger(prefixLength) ? [] : [{ ...parsed, prefixLength }];
    }),
  };
}
