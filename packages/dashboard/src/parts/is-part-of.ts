/** Whether a field that an error names, such as `env[0].key`, lies in this one: `env`. */
export function isPartOf(named: string, field: string): boolean {
  return named === field || named.startsWith(`${field}.`) || named.startsWith(`${field}[`);
}
