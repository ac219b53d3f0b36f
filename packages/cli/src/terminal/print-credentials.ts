import { formatAge } from './amounts.ts';
import { print, printJson, report } from './print.ts';
import { formatTable } from './table.ts';

export interface Listed {
  readonly id: string;
  readonly name: string;
  readonly suffix: string;
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly lastUsedAt: string | null;
}

/** Prints API keys and tokens, of which only the end is known. JSON output has the field names of REST. */
export function printCredentials(credentials: readonly Listed[], isJson: boolean, ifNone: string): void {
  if (isJson) return printJson(credentials.map(forPrograms));
  if (credentials.length === 0) return report(ifNone);
  const now = Date.now();
  const rows = credentials.map((credential) => [
    credential.id,
    credential.name,
    `…${credential.suffix}`,
    formatAge(credential.createdAt, now),
    credential.lastUsedAt === null ? 'never' : formatAge(credential.lastUsedAt, now),
    credential.expiresAt ?? 'never',
  ]);
  print(formatTable(['ID', 'NAME', 'ENDS IN', 'AGE', 'LAST USED', 'EXPIRES'], rows));
}

function forPrograms({ id, name, suffix, createdAt, expiresAt, lastUsedAt }: Listed): object {
  const times = { created_at: createdAt, expires_at: expiresAt, last_used_at: lastUsedAt };
  return { id, name, prefix: suffix, ...times };
}
