import { isIPv4, isIPv6 } from 'node:net';
import type { Reference } from '@svc/contract/image-reference';
import { parseAddress } from '../policy/address.ts';
import { isPublicEverywhere } from '../policy/groups.ts';

/** The canonical form of a reference; `parseReference` inverts it. */
export function formatReference(reference: Reference): string {
  const suffix = reference.digest === null ? `:${reference.tag}` : `@${reference.digest}`;
  return `${nameOf(reference)}${suffix}`;
}

export function nameOf(reference: Reference): string {
  return reference.registry === null ? reference.repository : `${reference.registry}/${reference.repository}`;
}

/** Whether the registry's host is this machine or a link-local one, such as a cloud's metadata service. */
export function isHostLocal(registry: string): boolean {
  const host = registry
    .replace(/:[0-9]+$/, '')
    .replace(/^\[|\]$/g, '')
    .toLowerCase();
  if (isIPv6(host)) return isLocalIpv6(host);
  if (isIPv4(host)) return /^(?:127|0)\.|^169\.254\./.test(host);
  return host === 'localhost' || host.endsWith('.localhost');
}

/** Whether the registry is given by a private address. Names may resolve to one too; that is not known here. */
export function isPrivateAddress(registry: string): boolean {
  const host = registry.replace(/:[0-9]+$/, '').replace(/^\[|\]$/g, '');
  const address = isIPv4(host) ? parseAddress(host) : null;
  if (address !== null) return !isPublicEverywhere(address);
  return isIPv6(host) && /^f[cd]/i.test(host);
}

function isLocalIpv6(host: string): boolean {
  const full = new URL(`http://[${host}]`).hostname.slice(1, -1);
  // An IPv4-mapped address (::ffff:7f00:1) could be any of the above: no registry needs one.
  return full === '::' || full === '::1' || full.startsWith('::ffff:') || /^fe[89ab]/.test(full);
}
