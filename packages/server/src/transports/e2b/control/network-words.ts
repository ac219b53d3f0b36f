import { isIP } from 'node:net';
import type { NetworkPolicy } from '@svc/contract';
import { badField } from '../../../dispatch/rest-dispatch.ts';
import { notOffered } from '../wire/e2b-failure.ts';

/** What E2B's clients say about the network of a sandbox. */
export interface E2bNetwork {
  readonly allowInternetAccess: boolean | null;
  readonly network: Readonly<Record<string, unknown>>;
}

const EVERYTHING = '0.0.0.0/0';
const NOT_HERE: Readonly<Record<string, string>> = {
  rules:
    'network.rules (headers that are set on the way) is not offered; use a secret of the organization, whose value replaces a placeholder',
  egressProxy:
    'network.egressProxy is not offered; allow the proxy in allowOut, and name it in the environment',
  maskRequestHost: 'network.maskRequestHost is not offered: services see the host that the client asked for',
  httpsPorts: 'network.httpsPorts is not offered: services behind ports speak HTTP',
};
const KNOWN = new Set(['allowOut', 'denyOut', 'allowPublicTraffic', 'dnsServers']);

type Rule = NonNullable<NetworkPolicy['rules']>[number];

/** Refuses what has no counterpart. @returns the policy; null when nothing was said, so that the default holds */
export function policyOf({ allowInternetAccess, network }: E2bNetwork): NetworkPolicy | null {
  for (const [field, value] of Object.entries(network)) {
    if (value === null || value === undefined || isEmpty(value)) continue;
    const sentence = NOT_HERE[field];
    if (sentence !== undefined) throw notOffered(sentence);
    if (!KNOWN.has(field)) throw badField(`network.${field}`, 'is not known here');
  }
  const allowed = textsOf(network['allowOut'], 'network.allowOut');
  const denied = textsOf(network['denyOut'], 'network.denyOut');
  const isClosed = allowInternetAccess === false || denied.includes(EVERYTHING);
  if (!isClosed && allowed.length === 0 && denied.length === 0) return null;
  return {
    default_egress: 'deny',
    // In this order: what is allowed wins over what is denied.
    rules: [
      ...allowed.map((text) => ruleOf(text, 'allow', 'network.allowOut')),
      ...denied.filter((text) => text !== EVERYTHING).map((text) => ruleOf(text, 'deny', 'network.denyOut')),
      ...(isClosed ? [] : [PUBLIC]),
    ],
  };
}

/** As the default policy: private addresses stay out of reach. */
const PUBLIC: Rule = { direction: 'egress', destination: { group: 'public' }, action: 'allow' };

function ruleOf(text: string, action: 'allow' | 'deny', field: string): Rule {
  return { direction: 'egress', destination: destinationOf(text, field), action };
}

function destinationOf(text: string, field: string): Rule['destination'] {
  if (text === EVERYTHING) return 'any';
  const [address = ''] = text.split('/');
  const version = isIP(address);
  if (version !== 0) return { cidr: text.includes('/') ? text : `${text}/${version === 4 ? 32 : 128}` };
  if (text === '') throw badField(field, 'must hold addresses, CIDRs and names');
  return text.startsWith('*.') ? { domain_suffix: text.slice(2) } : { domain: text };
}

function textsOf(value: unknown, field: string): readonly string[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || !value.every((each) => typeof each === 'string'))
    throw badField(field, 'must be a list of texts');
  return value;
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}
