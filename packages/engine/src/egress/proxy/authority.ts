import { isIPv6 } from 'node:net';

/** The host of `Host` or `:authority`, in lower case, without a dot at the end; null when it is not of the form host[:port]. */
export function hostOf(authority: string): string | null {
  return split(authority)?.host ?? null;
}

/**
 * Whether an authority means exactly this host at this port. Without a port it means the default port of its scheme; some clients
 * omit other ports as well.
 */
export function isAuthorityOf(authority: string, host: string, port: number): boolean {
  const parts = split(authority);
  return parts !== null && parts.host === host && (parts.port === null || parts.port === port);
}

function split(authority: string): { readonly host: string; readonly port: number | null } | null {
  const match = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9_.-]+))(?::(\d{1,5}))?$/i.exec(authority);
  const [, ipv6, name, port] = match ?? [];
  const host = (ipv6 ?? name)?.toLowerCase().replace(/\.$/, '');
  if (host === undefined || host === '' || (ipv6 !== undefined && !isIPv6(ipv6))) return null;
  return { host, port: port === undefined ? null : Number(port) };
}
