/** A pattern of host names: all, one, or one with its subdomains. */
export type HostPattern =
  | { readonly type: 'exact'; readonly value: string }
  /** `*.example.com` includes example.com itself. */
  | { readonly type: 'wildcard'; readonly value: string }
  | { readonly type: 'any' };

/** `host` in lower case, without a dot at the end. */
export function matchesHost(pattern: HostPattern, host: string): boolean {
  if (pattern.type === 'any') return true;
  const value = pattern.value.toLowerCase().replace(/\.$/, '');
  if (pattern.type === 'exact') return host === value;
  const suffix = value.replace(/^\*\./, '');
  return host === suffix || host.endsWith(`.${suffix}`);
}

/** Parses an entry of a list of hosts: `example.com`, `*.example.com` or `*`. */
export function parseHostPattern(text: string): HostPattern {
  if (text === '*') return { type: 'any' };
  return { type: text.startsWith('*.') ? 'wildcard' : 'exact', value: text };
}
