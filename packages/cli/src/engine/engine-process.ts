import { join } from 'node:path';

export function logPath(dataFolder: string): string {
  return join(dataFolder, 'engine.log');
}

/** The process of the engine with this data folder; undefined when it does not run. */
export async function findEngine(dataFolder: string): Promise<number | undefined> {
  const client = await import('@svc/engine/client');
  return (await client.findEngine(dataFolder))?.pid;
}
