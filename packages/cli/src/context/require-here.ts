import type { Globals } from '../globals.ts';
import { UsageError } from '../usage-error.ts';
import { readContexts, requireContext } from './context-file.ts';

/**
 * For commands that work on this machine alone: refused when a server elsewhere was chosen, whose `what` they would not touch.
 * A data folder that was named means this machine.
 * @throws UsageError that ends with `instead`, what to type
 */
export async function requireHere(globals: Globals, what: string, instead: string): Promise<void> {
  const url = await chosenUrl(globals);
  if (url !== undefined && !isHere(url))
    throw new UsageError(`${what} of ${url} are managed on the machine that it runs on\n  try: ${instead}`);
}

/** Of a server that was chosen; undefined: none was, or this machine. */
export async function chosenUrl(globals: Globals): Promise<string | undefined> {
  const { context, apiUrl, isFolderChosen, contextFolder } = globals;
  if (context === undefined && isFolderChosen) return undefined;
  if (context === undefined && apiUrl !== undefined) return apiUrl;
  const file = await readContexts(contextFolder);
  const name = context ?? file.active;
  return name === null ? undefined : requireContext(file, name).url;
}

export function isHere(url: string): boolean {
  return URL.canParse(url) && /^(localhost|127\..*|\[::1\])$/.test(new URL(url).hostname);
}
