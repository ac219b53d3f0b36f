/** Undefined when the path is not absolute or could climb. */
export function normalizeGuestPath(path: string): string | undefined {
  if (!path.startsWith('/')) return undefined;
  const parts = path.split('/').filter((part) => part !== '');
  if (parts.some((part) => part === '.' || part === '..')) return undefined;
  return `/${parts.join('/')}`;
}
