import { Option, type Command } from 'commander';
import { readConfig } from './config.ts';
import type { CliConfig } from './config.ts';
import { UsageError } from './usage-error.ts';

/** The options of every command. */
export interface Globals extends CliConfig {
  readonly isJson: boolean;
  /** Name of the context from `--context`. */
  readonly context: string | undefined;
  /** Slug of the organization from `--org`. */
  readonly chosenOrganization: string | undefined;
  /** How long a server may be silent. */
  readonly serverTimeoutMs: number;
}

const DEFAULT_TIMEOUT = '10s';
const MAX_TIMEOUT_SECONDS = 86_400;
const SECONDS_PER_UNIT: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 };

/** Options that may stand before a command or among its own. */
export function globalOptions(): readonly Option[] {
  return [
    new Option('--context <name>', 'server to talk to, as svc context ls names it'),
    new Option(
      '--org <slug>',
      'organization, or namespace, to act in (default: $SVC_ORG or that of the context)',
    ),
    new Option('--path <dir>', 'data folder of this machine (default: $SVC_HOME or /var/lib/svc)'),
    new Option('--server-timeout <time>', 'how long the server may be silent (default: $SVC_TIMEOUT or 10s)'),
    new Option('-o, --output <format>', 'how to print (default: text)').choices(['text', 'json']),
  ];
}

export function readGlobals(command: Command): Globals {
  const { path, output, context, org, serverTimeout } = command.optsWithGlobals<{
    path?: string;
    output?: string;
    context?: string;
    org?: string;
    serverTimeout?: string;
  }>();
  const config = readConfig(path === undefined ? {} : { path });
  if (/^\/(proc|sys)(\/|$)/.test(config.dataFolder))
    throw new UsageError(
      `--path must be a folder on a disk, not ${config.dataFolder}, which the kernel makes up\n  try: --path /var/lib/svc`,
    );
  return {
    ...config,
    isJson: output === 'json',
    context,
    chosenOrganization: org,
    serverTimeoutMs: readTimeout(serverTimeout ?? config.serverTimeout) * 1000,
  };
}

/** In seconds. */
function readTimeout(text: string | undefined): number {
  const match = /^(?<amount>\d{1,6})(?<unit>[smh]?)$/.exec(text ?? DEFAULT_TIMEOUT);
  const seconds =
    Number(match?.groups?.['amount'] ?? 0) * (SECONDS_PER_UNIT[match?.groups?.['unit'] ?? ''] ?? 1);
  if (seconds >= 1 && seconds <= MAX_TIMEOUT_SECONDS) return seconds;
  throw new UsageError(
    `--server-timeout and SVC_TIMEOUT take a time from 1s to 24h, not '${text}'\n  try: --server-timeout 30s`,
  );
}
