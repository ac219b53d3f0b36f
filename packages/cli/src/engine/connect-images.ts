import type { EngineClient } from '@svc/engine/client';
import { requireHere } from '../context/require-here.ts';
import type { Globals } from '../globals.ts';
import { connectEngine } from './connect.ts';

/**
 * Connects to the local engine for its images. They belong to the machine, not to an organization: a server lets its callers
 * pull, all else is for the operator. @throws UsageError when a remote server was chosen
 */
export async function connectImages(globals: Globals): Promise<EngineClient> {
  await requireHere(globals, 'images', 'svc image pull REFERENCE   # from here; the others there, with sudo');
  return await connectEngine(globals.dataFolder);
}
