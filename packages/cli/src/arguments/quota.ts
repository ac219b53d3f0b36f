import { InvalidArgumentError } from 'commander';

export type QuotaChanges = Readonly<Record<string, string | number | boolean | null>>;

/** `LIMIT=VALUE`, given any number of times; a later one wins. Which limits there are is the server's to say. */
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
