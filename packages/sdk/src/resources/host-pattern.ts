import type { HostPattern } from '@svc/contract';

/** A host as people write it: `api.example.com`, `*.example.com` or `*`. */
export function toHostPattern(host: string): HostPattern {
  if (host === '*') return { type: 'any' };
  return { type: host.startsWith('*.') ? 'wildcard' : 'exact', value: host };
}
