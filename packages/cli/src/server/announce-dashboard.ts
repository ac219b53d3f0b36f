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
 * Says where the dashboard is and, while nobody can sign in, how the first person gets in. Their link is shown on a terminal alone: what
 * goes elsewhere may be the journal, or a log of whatever started us, and be read by others.
 */
export async function announceDashboard(
  { dataFolder, databaseUrl, status }: StartedServer,
  output: typeof process.stdout | typeof process.stderr,
): Promise<void> {
  output.write(`  dashboard: ${status.url}/\n`);
  if (status.isDev || status.hasPeople) return;
  if (!output.isTTY) {
    output.write('  nobody can sign in yet; for a link that makes the account of the owner: svc user link\n');
    return;
  }
  output.write('  nobody can sign in yet. Open this to make the account of the owner:\n');
  // As it was given to us; from the environment both of us read it.
  const database = databaseUrl === undefined ? [] : ['--database', databaseUrl];
  const words = [MAIN, '--path', dataFolder, 'user', 'link', ...database];
  // SAFETY: no shell; our own program. In a process of its own, because it becomes the user of the server for good.
  const child = spawn(process.execPath, [...process.execArgv, '--', ...words], {
    stdio: ['ignore', output.fd, output.fd],
  });
  // That it failed it says itself; the server runs all the same.
  await once(child, 'exit');
}
