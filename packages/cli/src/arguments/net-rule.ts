import { InvalidArgumentError } from 'commander';
import type { NetworkChange } from '@svc/sdk';

type Policy = NonNullable<NetworkChange['policy']>;
export type NetRule = NonNullable<Policy['rules']>[number];
type Destination = NetRule['destination'];
type Protocol = NonNullable<NetRule['protocols']>[number];

const RULE =
  /^(?<action>[^:@]*)(?::(?<direction>[^@]*))?@(?<target>\[[^\]]*\]|[^:]*)(?::(?<protocols>[^:]*))?(?::(?<ports>[^:]*))?$/;
const GROUPS = ['public', 'loopback', 'private', 'link_local', 'metadata', 'multicast', 'host'] as const;
const PROTOCOLS: readonly Protocol[] = ['tcp', 'udp', 'icmpv4', 'icmpv6'];
const DNS_PORT = { start: 53, end: 53 };
const MAX_PORT = 65_535;

/**
 * `<action>[:<direction>]@<target>[:<protocols>[:<ports>]]`, separated by commas; repeatable. Several protocols and ports are
 * joined with `+`, because a comma ends the rule.
 */
export function collectNetRules(text: string, earlier: readonly NetRule[] = []): readonly NetRule[] {
  return [...earlier, ...text.split(',').map((rule) => parseRule(rule.trim()))];
}

function parseRule(text: string): NetRule {
  const { action, direction = 'egress', target, protocols, ports } = RULE.exec(text)?.groups ?? {};
  if (action === undefined || target === undefined)
    throw wrong(
      text,
      'write ACTION[:DIRECTION]@TARGET[:PROTOCOL[:PORTS]], such as allow@domain=example.com:tcp:443',
    );
  if (action !== 'allow' && action !== 'deny') throw wrong(text, `${quote(action)} is not allow or deny`);
  if (direction !== 'egress' && direction !== 'ingress' && direction !== 'any')
    throw wrong(text, `${quote(direction)} is not egress, ingress or any`);
  const rule: Omit<NetRule, 'destination'> = { direction, action, ...parseTransport(text, protocols, ports) };
  if (target !== 'dns') return { ...rule, destination: parseTarget(text, target) };
  if (protocols !== undefined)
    throw wrong(text, 'dns is port 53 over udp and tcp already; leave the rest out');
  return { ...rule, destination: { group: 'host' }, protocols: ['udp', 'tcp'], ports: [DNS_PORT] };
}

function parseTarget(text: string, target: string): Destination {
  if (target === 'any') return 'any';
  const name = target === 'meta' ? 'metadata' : target.replace('-', '_');
  const group = GROUPS.find((known) => known === name);
  if (group !== undefined) return { group };
  const [, kind, value = ''] = /^(domain|suffix)=(.*)$/.exec(target) ?? [];
  if (kind !== undefined && !/^[^\s.*/]+(\.[^\s.*/]+)*\.?$/.test(value))
    throw wrong(text, `${quote(value)} is no name such as example.com; no * is needed for a suffix`);
  if (kind === 'domain') return { domain: value };
  if (kind === 'suffix') {
    // A whole top-level domain is most likely a mistake.
    if (value.replace(/\.$/, '').includes('.')) return { domain_suffix: value };
    throw wrong(text, `${quote(value)} is too wide; a suffix has two labels, such as example.com`);
  }
  const bracketed = /^\[([0-9a-f:.]+(?:\/\d{1,3})?)\]$/i.exec(target)?.[1];
  if (bracketed !== undefined) return { cidr: bracketed };
  if (/^\d{1,3}(\.\d{1,3}){3}(\/\d{1,2})?$/.test(target)) return { cidr: target };
  const isName = /^[a-z0-9_-]+(\.[a-z0-9_-]+)+\.?$/i.test(target);
  throw wrong(
    text,
    isName
      ? `write domain=${target} for the name, or suffix=${target} for all names below it too`
      : `${quote(target)} is no target; there are any, dns, meta, ${GROUPS.join(', ')}, domain=NAME, suffix=NAME, ADDRESS[/BITS], [IPV6[/BITS]]`,
  );
}

function parseTransport(
  text: string,
  protocols: string | undefined,
  ports: string | undefined,
): Pick<NetRule, 'protocols' | 'ports'> {
  const named = protocols === undefined || protocols === 'any' ? [] : protocols.split('+');
  const known = named.map((name) => {
    const protocol = PROTOCOLS.find((each) => each === (name === 'icmp' ? 'icmpv4' : name));
    if (protocol !== undefined) return protocol;
    throw wrong(text, `${quote(name)} is no protocol; there are ${PROTOCOLS.join(', ')} and any`);
  });
  if (ports !== undefined && known.some((protocol) => protocol.startsWith('icmp')))
    throw wrong(text, 'ICMP has no ports; leave them out');
  return {
    ...(known.length === 0 ? {} : { protocols: known }),
    ...(ports === undefined ? {} : { ports: ports.split('+').map((range) => parseRange(text, range)) }),
  };
}

function parseRange(text: string, range: string): { readonly start: number; readonly end: number } {
  const [, first, last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(range) ?? [];
  const [start, end] = [Number(first ?? 0), Number(last ?? 0)];
  if (start >= 1 && start <= end && end <= MAX_PORT) return { start, end };
  throw wrong(text, `${quote(range)} is no port from 1 to ${MAX_PORT} and no range such as 8000-8999`);
}

function wrong(text: string, reason: string): InvalidArgumentError {
  return new InvalidArgumentError(`In the rule ${quote(text)}: ${reason}.`);
}

function quote(text: string): string {
  return `'${text}'`;
}
