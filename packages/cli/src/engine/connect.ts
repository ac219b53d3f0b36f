import { join } from 'node:path';
import type { EngineClient } from '@svc/engine/client';

/** A client of the engine that keeps its data there. Connects at the first call. */
export async function connectEngine(dataFolder: string): Promise<EngineClient> {
  const { EngineClient } = await import('@svc/engine/client');
  return new EngineClient({ socketPath: socketPath(dataFolder) });
}

function socketPath(dataFolder: string): string {
  // SAFETY: the data folder is the operator's own choice.
  return join(dataFolder, 'engine.sock');
}
