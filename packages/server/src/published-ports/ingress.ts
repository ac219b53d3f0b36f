import { networkInterfaces } from 'node:os';
import type { Network } from '@svc/contract';
import { decide, parseAddress, resolvePolicy, seenFromPorts, type HostNetworks } from '@svc/engine/policy';

/** Whether a connection from `source` may reach a port of a sandbox. */
export type MayEnter = (source: string, guestPort: number, protocol: 'tcp' | 'udp') => boolean;

/** A refused connection. */
export interface RefusedConnection {
  readonly address: string;
  readonly port: number;
  readonly protocol: 'tcp' | 'udp';
  /** Index of the rule that decided; null: the default did. */
  readonly rule: number | null;
}

/** Evaluates the policy of a sandbox for connections of its published ports. */
export function ingressOf(
  network: Network | undefined,
  onRefused: (connection: RefusedConnection) => void = () => undefined,
): MayEnter {
  const policy = resolvePolicy(network);
  return (source, port, protocol) => {
    const address = parseAddress(source);
    // Rules cannot match an address that cannot be parsed.
    if (address === null) return false;
    const flow = { direction: 'ingress', address, port, protocol, names: [] } as const;
    const { action, rule } = decide(policy, flow, hostNetworks());
    if (action === 'deny') onRefused({ address: source, port, protocol, rule });
    return action === 'allow';
  };
}

/** The addresses of this host, and the networks they are in. */
function hostNetworks(): HostNetworks {
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return seenFromPorts({
    hostAddresses: own.flatMap(({ address }) => parseAddress(address) ?? []),
    neighbours: own.flatMap(({ address, cidr, internal }) => {
      const parsed = internal ? null : parseAddress(address);
      const prefixLength = Number(cidr?.split('/')[1]);
      return parsed === null || !Number.isInteger(prefixLength) ? [] : [{ ...parsed, prefixLength }];
    }),
  });
}
