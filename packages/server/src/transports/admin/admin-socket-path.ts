import { join } from 'node:path';

/**
 * The socket for local commands of the operator. It needs no key, because only the server's user and root can open
 * it.
 */
export function adminSocketPath(serverFolder: string): string {
  return join(serverFolder, 'admin.sock');
}
