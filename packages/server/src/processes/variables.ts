import { PlatformError } from '@svc/contract';

/** Entries `KEY=VALUE` of the parameter `envs`, split at the first `=`. @throws PlatformError `invalid_request` when a name is given twice */
export function toVariables(entries: readonly string[]): Record<string, string> {
  const variables = new Map<string, string>();
  for (const [index, entry] of entries.entries()) {
    const at = entry.indexOf('=');
    const key = entry.slice(0, at);
    if (variables.has(key)) throw givenTwice(`envs[${index}]`, key);
    variables.set(key, entry.slice(at + 1));
  }
  return Object.fromEntries(variables);
}

function givenTwice(field: string, key: string): PlatformError {
  const reason = `${key} is given twice; keep one`;
  return new PlatformError('invalid_request', `Invalid params: ${field} ${reason}`, {
    details: { field, reason },
  });
}
