import { readConfig } from '../daemon/config.ts';
import type { EngineConfig } from '../daemon/config.ts';

/** What an engine on this data folder would use. */
export function readDoctorConfig(dataFolder: string): EngineConfig {
  return readConfig(['--path', dataFolder], process.env);
}

export function searchPath(): readonly string[] {
  // Programs of root lie in folders that the PATH of other users does not name.
  return [...new Set([...(process.env['PATH'] ?? '').split(':'), '/usr/sbin', '/sbin'])].filter(
    (folder) => folder !== '',
  );
}
