import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Shows an address to whoever sits at this machine. There may be no such program: the address is printed anyway. */
export async function openBrowser(program: string, url: string): Promise<void> {
  if (!/^https?:\/\//.test(url)) return;
  // SAFETY: no shell; the user's own program, and an address that is no option of it.
  const child = spawn(program, [url], { stdio: 'ignore', detached: true });
  await once(child, 'spawn').catch(() => undefined);
  child.unref();
}
