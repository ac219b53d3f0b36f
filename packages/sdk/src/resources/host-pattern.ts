import type { HostPattern } from '@svc/contract';

/** Parses a host pattern: `api.example.com`, `*.example.com` or `*`. */
export function toHostPattern(host: string): HostPattern {
  if (host === '*') return { type: 'any' };
  return { type: host.startsWith('*.') ? 'wildcard' : 'exact', value: host };
}
