import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { ServerStatus } from '@svc/server/admin';

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url));

export interface StartedServer {
  readonly dataFolder: string;
  /** Of the server, when it does not use its own file. */
  readonly databaseUrl: string | undefined;
  readonly status: Pick<ServerStatus, 'url' | 'isDev' | 'hasPeople'>;
}

/**
 * Prints the address of the dashboard and, while there is no account, how to make the first one. The link for it is printed to a terminal
 * only: other users may read a journal or a log.
 */
export async function announceDashboard(
  { dataFolder, databaseUrl, status }: StartedServer,
  output: typeof process.stdout | typeof process.stderr,
): Promise<void> {
  output.write(`  dashboard: ${status.url}/\n`);
  if (status.isDev || status.hasPeople) return;
  if (!output.isTTY) {
    output.write('  no account yet; for a link that makes the account of the owner: svc user link\n');
    return;
  }
  output.write('  no account yet. Open this to make the account of the owner:\n');
  // As it was given to us; from the environment both of us read it.
  const database = databaseUrl === undefined ? [] : ['--database', databaseUrl];
  const words = [MAIN, '--path', dataFolder, 'user', 'link', ...database];
  // SAFETY: no shell; our own program. In a process of its own, because it becomes the user of the server for good.
  const child = spawn(process.execPath, [...process.execArgv, '--', ...words], {
    stdio: ['ignore', output.fd, output.fd],
  });
  // The browser reports its own failure; the server runs all the same.
  await once(child, 'exit');
}
