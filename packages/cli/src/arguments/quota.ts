import { InvalidArgumentError } from 'commander';

export type QuotaChanges = Readonly<Record<string, string | number | boolean | null>>;

/** `LIMIT=VALUE`, repeatable; a later one wins. The server checks the names of the limits. */
export function collectQuota(text: string, earlier: QuotaChanges = {}): QuotaChanges {
  const [, name, value] = /^([a-z_]+)=(.+)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) {
    throw new InvalidArgumentError('Give LIMIT=VALUE, such as max_sandboxes=10.');
  }
  return { ...earlier, [name]: parseValue(value) };
}

function parseValue(text: string): string | number | boolean | null {
  if (text === 'unlimited') return null;
  if (text === 'true' || text === 'false') return text === 'true';
  return /^\d{1,15}$/.test(text) ? Number(text) : text;
}
