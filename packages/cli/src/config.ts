import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

export interface CliConfig {
  /** Data folder of the engine and the server on this machine. */
  readonly dataFolder: string;
  /** Whether that folder was chosen for this call, by `--path` or SVC_HOME. */
  readonly isFolderChosen: boolean;
  /** Whether that folder was chosen by `--path`, which counts more than SVC_API_URL; SVC_HOME counts less. */
  readonly isPathGiven: boolean;
  /** Where contexts and their keys are kept. */
  readonly contextFolder: string;
  /** Where the user's SSH keys are. */
  readonly sshFolder: string;
  /** The server of the environment, for commands without a context. */
  readonly apiUrl: string | undefined;
  readonly apiKey: string | undefined;
  readonly organization: string | undefined;
  /** How long a server may be silent, as text. */
  readonly serverTimeout: string | undefined;
  /** A variable that a context names as the place of its key. */
  readonly readVariable: (name: string) => string | undefined;
  readonly hasColours: boolean;
  /** The terminal type (TERM) for processes. */
  readonly terminalName: string;
  /** The program that opens an address in a browser; null: there is no screen. */
  readonly browser: string | null;
}

/** The only place that reads the environment. An empty variable counts as none. */
export function readConfig(
  options: { readonly path?: string },
  env: Readonly<Record<string, string | undefined>> = process.env,
): CliConfig {
  const read = (name: string) => (env[name] === '' ? undefined : env[name]);
  const isPlain = read('NO_COLOR') !== undefined || env['TERM'] === 'dumb';
  const chosen = options.path ?? read('SVC_HOME');
  const terminal = read('TERM') ?? 'dumb';
  const home = read('HOME') ?? homedir();
  return Object.freeze({
    dataFolder: resolve(chosen ?? '/var/lib/svc'),
    isFolderChosen: chosen !== undefined,
    isPathGiven: options.path !== undefined,
    // SAFETY: the user's own environment says where the user's own settings are.
    contextFolder: join(read('XDG_CONFIG_HOME') ?? join(home, '.config'), 'svc'),
    sshFolder: join(home, '.ssh'),
    apiUrl: read('SVC_API_URL') ?? read('SVC_SERVER_URL'),
    apiKey: read('SVC_API_KEY'),
    organization: read('SVC_ORG'),
    serverTimeout: read('SVC_TIMEOUT'),
    readVariable: read,
    hasColours: !isPlain && process.stdout.isTTY,
    terminalName: terminal === 'dumb' ? 'xterm' : terminal,
    browser: process.stdout.isTTY ? browserOf(process.platform, read) : null,
  });
}

/** Over SSH, in a script and in a container there is none. */
function browserOf(platform: NodeJS.Platform, read: (name: string) => string | undefined): string | null {
  const hasScreen =
    platform === 'darwin' || read('DISPLAY') !== undefined || read('WAYLAND_DISPLAY') !== undefined;
  if (!hasScreen) return null;
  return read('BROWSER') ?? (platform === 'darwin' ? 'open' : 'xdg-open');
}
