import type { Command } from 'commander';
import { readConfig } from './config.ts';
import type { CliConfig } from './config.ts';

/** What every command knows besides its own options. */
export interface Globals extends CliConfig {
  readonly isJson: boolean;
}

export function readGlobals(command: Command): Globals {
  const { path, output } = command.optsWithGlobals<{ path?: string; output?: string }>();
  return { ...readConfig(path === undefined ? {} : { path }), isJson: output === 'json' };
}
