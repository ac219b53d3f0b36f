const MAX_NAME_LENGTH = 63;

/** What is wrong with a name of a sandbox or a namespace; undefined when nothing is. The order of checks is public. */
export function nameProblem(kind: 'Sandbox name' | 'Namespace', name: string): string | undefined {
  if (name === '') return `${kind} cannot be empty`;
  if (Array.from(name).length > MAX_NAME_LENGTH) return `${kind} cannot exceed ${MAX_NAME_LENGTH} characters`;
  if (!/^[A-Za-z0-9_-]+$/.test(name)) {
    return `${kind} can only contain alphanumeric characters, hyphens, or underscores`;
  }
  if (!/^[A-Za-z0-9]/.test(name)) return `${kind} must start with an alphanumeric character`;
  return undefined;
}
