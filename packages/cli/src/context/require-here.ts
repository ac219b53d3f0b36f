import { readGlobals, type Globals } from '../globals.ts';
import type { Command } from 'commander';
import { UsageError } from '../usage-error.ts';
import { readContexts, requireContext } from './context-file.ts';

/**
 * For commands that work on the local data folder: refuses when another server was chosen, because they would not affect it. A
 * data folder that was named by `--path` means this machine.
 * @throws UsageError that ends with `instead`, the command to type
 */
export async function requireHere(globals: Globals, what: string, instead?: string): Promise<void> {
  const url = await chosenUrl(globals);
  if (url === undefined) return;
  const { dataFolder } = globals;
  const thisFolder = `--path ${dataFolder}   # for this machine`;
  if (!isHere(url))
    throw new UsageError(
      `${what} of ${url} are managed on the machine that it runs on, and this machine's data folder is ${dataFolder}\n  try: ${instead ?? thisFolder}`,
    );
  const own = await addressOf(dataFolder);
  if (own !== undefined && isOtherPort(url, own))
    throw new UsageError(
      `${url} is another server than that of the data folder ${dataFolder}, which is at ${own}\n  try: ${thisFolder}`,
    );
}

/** Reads the global options of a command that works on this machine only; checks like `requireHere`. */
export async function readGlobalsHere(command: Command, what: string): Promise<Globals> {
  const globals = readGlobals(command);
  await requireHere(globals, what);
  return globals;
}

/** The address of the server with this data folder; undefined when it does not run, or its status cannot be read. */
async function addressOf(dataFolder: string): Promise<string | undefined> {
  const { readStatus } = await import('@svc/server/admin');
  return (await readStatus(dataFolder).catch(() => undefined))?.url;
}

/** Ignores ports, because a TLS proxy in front of the same server has another port. */
function isOtherPort(url: string, own: string): boolean {
  const [chosen, ours] = [new URL(url), new URL(own)];
  return chosen.protocol === 'http:' && ours.protocol === 'http:' && chosen.port !== ours.port;
}

/** The address of the chosen server; undefined: none was chosen, or it is on this machine. */
export async function chosenUrl(globals: Globals): Promise<string | undefined> {
  const { context, apiUrl, isPathGiven, isFolderChosen, contextFolder } = globals;
  if (context === undefined && isPathGiven) return undefined;
  if (context === undefined && apiUrl !== undefined) return apiUrl;
  if (context === undefined && isFolderChosen) return undefined;
  const file = await readContexts(contextFolder);
  const name = context ?? file.active;
  return name === null ? undefined : requireContext(file, name).url;
}

export function isHere(url: string): boolean {
  return URL.canParse(url) && /^(localhost|127\..*|\[::1\])$/.test(new URL(url).hostname);
}
