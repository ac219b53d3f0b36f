import { join } from 'node:path';

/** Where the operator's own commands ask, without a key: only the server's user and root can reach it. */
export function adminSocketPath(serverFolder: string): string {
  return join(serverFolder, 'admin.sock');
}
