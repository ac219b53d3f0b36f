import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Protocol } from '@svc/contract/orchestrator';
import type { Pin } from '../egress/egress-messages.ts';
import { formatAddress, parseAddress } from '../policy/address.ts';
import { decide } from '../policy/decide.ts';
import type { HostNetworks } from '../policy/groups.ts';
import type { ResolvedPolicy } from '../policy/resolve-policy.ts';

const run = promisify(execFile);
const COMMAND_TIMEOUT_MS = 10_000;
const MAX_LIST_BYTES = 64 * 1024 * 1024;
const DNS_PORT = 53;

interface Connection {
  readonly address: string;
  readonly protocol: Protocol;
  readonly peer: string;
  readonly port: number;
}

/**
 * The packet filter judges the first packet of a connection. After a policy change this removes connections of a sandbox that the new
 * policy does not allow from the kernel's table, so that their next packet is judged like a first one.
 */
export async function rejudgeConnections(
  {
    addresses,
    policy,
    ports,
  }: {
    /** The addresses of the sandbox in each family. */
    readonly addresses: readonly string[];
    readonly policy: ResolvedPolicy;
    /** Connections to these ports must be intercepted from their first byte; connections already in the proxy stay there. */
    readonly ports: ReadonlySet<number> | 'all';
  },
  pins: readonly Pin[],
  hostNetworks: HostNetworks,
): Promise<void> {
  const all = (await Promise.all(addresses.map(listConnections))).flat();
  const denied = all.filter(({ protocol, peer, port }) => {
    const parsed = parseAddress(peer);
    if (parsed === null) return false;
    const names = pins
      .filter((pin) => formatAddress(pin.address) === formatAddress(parsed))
      .map(({ name }) => name);
    const flow = { direction: 'egress', address: parsed, port, protocol, names } as const;
    const { action, needsName } = decide(policy, flow, hostNetworks);
    return action === 'deny' || needsName || (protocol === 'tcp' && (ports === 'all' || ports.has(port)));
  });
  const filters = new Set(denied.map((connection) => JSON.stringify(filterOf(connection))));
  for (const filter of filters) await conntrack('-D', ...(JSON.parse(filter) as string[]));
}

function filterOf({ address, protocol, peer, port }: Connection): readonly string[] {
  const line = [
    '-f',
    familyOf(address),
    '-s',
    address,
    '-d',
    peer,
    '-p',
    protocol === 'icmpv4' ? 'icmp' : protocol,
  ];
  return protocol === 'icmpv4' || protocol === 'icmpv6' ? line : [...line, '--dport', String(port)];
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return address.includes(':') ? 'ipv6' : 'ipv4';
}

/** Leaves out questions to the resolver, which judges each of them by its name. */
async function listConnections(address: string): Promise<readonly Connection[]> {
  const text = await conntrack('-L', '-f', familyOf(address), '-s', address);
  return text.split('\n').flatMap((line): readonly Connection[] => {
    const [, name = '', peer = ''] = /^(\w+)\s.*?\bdst=(\S+)/.exec(line) ?? [];
    const port = Number(/\bdport=(\d+)/.exec(line)?.[1] ?? 0);
    if (name === 'icmp' || name === 'icmpv6')
      return [{ address, protocol: name === 'icmp' ? 'icmpv4' : name, peer, port: 0 }];
    const isJudged = (name === 'tcp' || name === 'udp') && port !== DNS_PORT;
    return isJudged ? [{ address, protocol: name, peer, port }] : [];
  });
}

async function conntrack(...parameters: readonly string[]): Promise<string> {
  try {
    // SAFETY: no shell, a fixed program; addresses and numbers were read from a slot and from the kernel.
    const { stdout } = await run('conntrack', parameters, {
      timeout: COMMAND_TIMEOUT_MS,
      maxBuffer: MAX_LIST_BYTES,
    });
    return stdout;
  } catch (error) {
    // Exit code 1: no match, because the connection has ended.
    if (error instanceof Error && 'code' in error && error.code === 1) return '';
    throw error;
  }
}
