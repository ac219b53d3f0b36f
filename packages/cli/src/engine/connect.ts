import { accessSync, constants, existsSync } from 'node:fs';
import { join } from 'node:path';
import type { EngineClient } from '@svc/engine/client';
import { UsageError } from '../usage-error.ts';

/** A client of the engine with this data folder. Connects at the first call. @throws UsageError without access to its socket */
export async function connectEngine(dataFolder: string): Promise<EngineClient> {
  const path = socketPath(dataFolder);
  if (existsSync(path) && !isOurs(path))
    throw new UsageError('the engine of this machine is for root\n  try: the same command with sudo');
  const { EngineClient } = await import('@svc/engine/client');
  return new EngineClient({ socketPath: path });
}

function isOurs(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Root has its own socket with more operations. */
function socketPath(dataFolder: string): string {
  // SAFETY: the data folder is the operator's own choice.
  return join(dataFolder, 'engine-root.sock');
}
