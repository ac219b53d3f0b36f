import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import type { Globals } from '../globals.ts';
import { readContexts } from './context-file.ts';
import { isHere } from './require-here.ts';

/**
 * Whether a command that the local engine could carry out is meant for a server: a server was chosen, or the user has no access
 * to the engine. A data folder that was named means its own engine, unless SVC_API_URL names a server elsewhere.
 */
export async function isServerMeant(globals: Globals): Promise<boolean> {
  const { context, apiUrl, isPathGiven, isFolderChosen, contextFolder, dataFolder } = globals;
  if (context !== undefined) return true;
  if (isPathGiven) return false;
  if (isFolderChosen && (apiUrl === undefined || isHere(apiUrl))) return false;
  if (apiUrl !== undefined || (await readContexts(contextFolder)).active !== null) return true;
  return process.getuid?.() !== 0 && !(await isUsable(join(dataFolder, 'engine.sock')));
}

async function isUsable(socketPath: string): Promise<boolean> {
  return await access(socketPath, constants.W_OK).then(
    () => true,
    () => false,
  );
}
