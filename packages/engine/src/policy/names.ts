/** A name as rules and questions are compared: lower case, without the dot at the end. */
export function normalizeName(name: string): string {
  return name.toLowerCase().replace(/\.$/, '');
}

/** Letters, digits, hyphens and underscores between dots, as names of hosts on the internet are. */
export function isHostName(name: string): boolean {
  return (
    name.length <= 253 &&
    name.split('.').every((label) => /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/i.test(label)) &&
    !/^[\d.]+$/.test(name)
  );
}

/** Whether `name` is `suffix` or ends with it after a dot. Both normalized. */
export function hasSuffix(name: string, suffix: string): boolean {
  return name === suffix || name.endsWith(`.${suffix}`);
}
