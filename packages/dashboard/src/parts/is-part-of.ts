/** Whether the field of an error, such as `env[0].key`, is part of this field: `env`. */
export function isPartOf(named: string, field: string): boolean {
  return named === field || named.startsWith(`${field}.`) || named.startsWith(`${field}[`);
}
