import { Option, type Command } from 'commander';
import { readConfig } from './config.ts';
import type { CliConfig } from './config.ts';

/** What every command knows besides its own options. */
export interface Globals extends CliConfig {
  readonly isJson: boolean;
  /** Name of the context that was asked for. */
  readonly context: string | undefined;
}

/** Options that may stand before a command or among its own. */
export function globalOptions(): readonly Option[] {
  return [
    new Option('--context <name>', 'server to talk to, as svc context ls names it'),
    new Option('--path <dir>', 'data folder of this machine (default: $SVC_HOME or /var/lib/svc)'),
    new Option('-o, --output <format>', 'how to print (default: text)').choices(['text', 'json']),
  ];
}

export function readGlobals(command: Command): Globals {
  const { path, output, context } = command.optsWithGlobals<{
    path?: string;
    output?: string;
    context?: string;
  }>();
  return { ...readConfig(path === undefined ? {} : { path }), isJson: output === 'json', context };
}
