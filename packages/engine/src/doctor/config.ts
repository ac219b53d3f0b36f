import { readConfig } from '../daemon/config.ts';
import type { EngineConfig } from '../daemon/config.ts';

/** Paths and programs that an engine on this data folder would use. */
export function readDoctorConfig(dataFolder: string): EngineConfig {
  return readConfig(['--path', dataFolder], process.env);
}

export function searchPath(): readonly string[] {
  // Adds the folders of root's programs, which the PATH of other users lacks.
  return [...new Set([...(process.env['PATH'] ?? '').split(':'), '/usr/sbin', '/sbin'])].filter(
    (folder) => folder !== '',
  );
}
