import { resolve } from 'node:path';

export interface CliConfig {
  /** Data folder of the engine that commands talk to. */
  readonly dataFolder: string;
  /** Where clients reach the server. */
  readonly serverUrl: string;
  readonly apiKey: string | undefined;
  readonly hasColours: boolean;
  /** What a process on our terminal should take it for. */
  readonly terminalName: string;
}

/** The only place that reads the environment. */
export function readConfig(
  options: { readonly path?: string },
  env: Readonly<Record<string, string | undefined>> = process.env,
): CliConfig {
  const { NO_COLOR, TERM } = env;
  const isPlain = (NO_COLOR !== undefined && NO_COLOR !== '') || TERM === 'dumb';
  return Object.freeze({
    dataFolder: resolve(options.path ?? env['SVC_HOME'] ?? '/var/lib/svc'),
    serverUrl: env['SVC_SERVER_URL'] ?? 'http://127.0.0.1:5555',
    apiKey: env['SVC_API_KEY'],
    hasColours: !isPlain && process.stdout.isTTY,
    terminalName: TERM === undefined || TERM === '' || TERM === 'dumb' ? 'xterm' : TERM,
  });
}
