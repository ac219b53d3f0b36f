/** The form in which names are compared: lower case, without the trailing dot. */
export function normalizeName(name: string): string {
  return name.toLowerCase().replace(/\.$/, '');
}

/** Whether a name consists of letters, digits, hyphens and underscores between dots, like host names on the internet. */
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
