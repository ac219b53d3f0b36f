import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { EngineClient } from '@svc/engine/client';

/** A client of the engine that keeps its data there. Connects at the first call. */
export async function connectEngine(dataFolder: string): Promise<EngineClient> {
  const { EngineClient } = await import('@svc/engine/client');
  return new EngineClient({ socketPath: socketPath(dataFolder) });
}

/** Root has a socket of its own when the main one belongs to the server's user. */
function socketPath(dataFolder: string): string {
  // SAFETY: the data folder is the operator's own choice.
  const rootSocket = join(dataFolder, 'engine-root.sock');
  return existsSync(rootSocket) ? rootSocket : join(dataFolder, 'engine.sock');
}
