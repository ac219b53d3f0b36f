import type { HostPattern, Network, SecretEntry } from '@svc/contract';
import type { SecretRecord } from '../store/secrets.ts';

type Tls = Network['tls'];
type Terms = Pick<SecretRecord, 'name' | 'allowedHosts' | 'authorities'>;

interface Problem {
  /** Path below `network`; `entry` stands for the entry. */
  readonly field: string;
  readonly reason: string;
}

/** A name without a host (RFC 6761), for a secret without allowed hosts, because the list in a spec is never empty. */
const NOWHERE: readonly HostPattern[] = [{ type: 'exact', value: 'nowhere.invalid' }];

/**
 * The problem, if any, with a sandbox's use of an organization's secret. Members who may make sandboxes may use the secret but not
 * choose who gets it: neither by adding a host, nor by having another machine accepted as the host.
 */
export function findProblem(entry: SecretEntry, terms: Terms, tls: Tls): Problem | undefined {
  const index = entry.allowed_hosts.findIndex((host) => !isAmong(host, terms.allowedHosts));
  if (index === -1) return findDoubt(entry, terms, tls);
  const known = terms.allowedHosts.map(({ value }) => value).join(', ');
  return {
    field: `entry.allowed_hosts[${index}]`,
    reason:
      `the secret ${terms.name} is for ${known} alone; name one of these, ` +
      `or have an admin add the host with svc secret set ${terms.name} --host`,
  };
}

/** The hosts that get the value now: those that both the sandbox and the secret name. */
export function hostsInForce(entry: SecretEntry, terms: Terms, tls: Tls): HostPattern[] {
  if (findDoubt(entry, terms, tls) !== undefined) return [...NOWHERE];
  const { allowedHosts } = terms;
  const both = [
    ...entry.allowed_hosts.filter((host) => isAmong(host, allowedHosts)),
    ...allowedHosts.filter(
      (host) => isAmong(host, entry.allowed_hosts) && !entry.allowed_hosts.some((own) => isSame(own, host)),
    ),
  ];
  return both.length === 0 ? [...NOWHERE] : both;
}

/** How another machine could pass for an allowed host. Hosts with unverified certificates prove nothing, so they need no rule. */
function findDoubt(entry: SecretEntry, { name, authorities }: Terms, tls: Tls): Problem | undefined {
  if (entry.require_tls_identity === false)
    return {
      field: 'entry.require_tls_identity',
      reason: `the secret ${name} of the organization goes to hosts that prove who they are; leave it out, or send a value`,
    };
  const isKnown = (text: string) => authorities.some((known) => known.trim() === text.trim());
  const reason =
    `is no authority for the secret ${name} of the organization; have an admin add it with ` +
    `svc secret set ${name} --ca, or the operator to what the host trusts`;
  for (const [index, text] of (tls?.upstream_ca_cert ?? []).entries())
    if (!isKnown(text)) return { field: `tls.upstream_ca_cert[${index}]`, reason };
  for (const [index, { pattern, path }] of (tls?.scoped_upstream_ca_cert ?? []).entries()) {
    const scope = toPattern(pattern);
    const isMeant = entry.allowed_hosts.some((host) => isWithin(host, scope) || isWithin(scope, host));
    if (isMeant && !isKnown(path)) return { field: `tls.scoped_upstream_ca_cert[${index}].path`, reason };
  }
  return undefined;
}

function isAmong(host: HostPattern, hosts: readonly HostPattern[]): boolean {
  return hosts.some((other) => isWithin(host, other));
}

/** Whether every host that matches `inner` matches `outer`. */
function isWithin(inner: HostPattern, outer: HostPattern): boolean {
  if (outer.type === 'any') return true;
  if (inner.type === 'any' || (inner.type === 'wildcard' && outer.type === 'exact')) return false;
  const [name, above] = [nameOf(inner.value), nameOf(outer.value)];
  return name === above || (outer.type === 'wildcard' && name.endsWith(`.${above}`));
}

function isSame(one: HostPattern, other: HostPattern): boolean {
  return isWithin(one, other) && isWithin(other, one);
}

function nameOf(value: string): string {
  return value.toLowerCase().replace(/^\*\./, '').replace(/\.$/, '');
}

function toPattern(text: string): HostPattern {
  return { type: text.startsWith('*.') ? 'wildcard' : 'exact', value: text };
}
