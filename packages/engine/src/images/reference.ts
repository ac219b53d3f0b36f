import { isIPv4, isIPv6 } from 'node:net';
import type { Reference } from '@svc/contract/image-reference';
import { parseAddress } from '../policy/address.ts';
import { isPublicEverywhere } from '../policy/groups.ts';

/** The one spelling of a reference; `parseReference` of it gives the same. */
export function formatReference(reference: Reference): string {
  const suffix = reference.digest === null ? `:${reference.tag}` : `@${reference.digest}`;
  return `${nameOf(reference)}${suffix}`;
}

export function nameOf(reference: Reference): string {
  return reference.registry === null ? reference.repository : `${reference.registry}/${reference.repository}`;
}

/** The host that would be asked is this machine or a link-local one, such as a cloud's metadata service. */
export function isHostLocal(registry: string): boolean {
  const host = registry
    .replace(/:[0-9]+$/, '')
    .replace(/^\[|\]$/g, '')
    .toLowerCase();
  if (isIPv6(host)) return isLocalIpv6(host);
  if (isIPv4(host)) return /^(?:127|0)\.|^169\.254\./.test(host);
  return host === 'localhost' || host.endsWith('.localhost');
}

/** The registry is given by an address that only a private network has. Names may lead to one too; that is not known here. */
export function isPrivateAddress(registry: string): boolean {
  const host = registry.replace(/:[0-9]+$/, '').replace(/^\[|\]$/g, '');
  const address = isIPv4(host) ? parseAddress(host) : null;
  if (address !== null) return !isPublicEverywhere(address);
  return isIPv6(host) && /^f[cd]/i.test(host);
}

function isLocalIpv6(host: string): boolean {
  const full = new URL(`http://[${host}]`).hostname.slice(1, -1);
  // An IPv4 address in IPv6 clothing (::ffff:7f00:1) could be any of the above: no registry needs one.
  return full === '::' || full === '::1' || full.startsWith('::ffff:') || /^fe[89ab]/.test(full);
}
