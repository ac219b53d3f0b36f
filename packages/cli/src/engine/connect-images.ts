import type { EngineClient } from '@svc/engine/client';
import { requireHere } from '../context/require-here.ts';
import type { Globals } from '../globals.ts';
import { connectEngine } from './connect.ts';

/**
 * The engine of this machine, for its images. They belong to the machine, not to an organization, so that a server lets its
 * callers pull, and leaves the rest to its operator. @throws UsageError when a server elsewhere was chosen
 */
export async function connectImages(globals: Globals): Promise<EngineClient> {
  await requireHere(globals, 'images', 'svc image pull REFERENCE   # from here; the others there, with sudo');
  return await connectEngine(globals.dataFolder);
}
