import { isAbsolute, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { readPublishAddresses, readShownPorts, readSsh } from './gateway-options.ts';
import type { ServerOptions } from './server-parts.ts';
import { SIGN_UPS, type SignUp } from './access/sign-up.ts';
import { DEFAULT_REST_SETTINGS, type RestSettings } from './rest-settings.ts';
import { EXIT } from './host/exit-codes.ts';
import { StartError } from './host/start-error.ts';
import { readServiceManager, type ServiceManager } from './host/notify-systemd.ts';
import { SUPERVISED } from './host/supervisor.ts';
import { highestCeiling, readCeilings } from './sandboxes/network-ceilings.ts';
import { readOtelSettings, type OtelSettings } from './tracing/otel-settings.ts';
import type { SshSettings } from './transports/ssh/ssh-settings.ts';
import { DEFAULT_LIMITS } from './transports/http/http-limits.ts';
import { isLoopback } from './transports/http/loopback.ts';

export const DEFAULT_HOST = '127.0.0.1';
export const DEFAULT_PORT = 5555;

export interface ServerConfig {
  /** All files of server and engine that must survive a restart. */
  readonly dataFolder: string;
  /** The server's own part of it, owned by the user that it runs as. */
  readonly serverFolder: string;
  readonly options: ServerOptions;
  readonly isDev: boolean;
  readonly shouldResetKey: boolean;
  readonly logLevel: string;
  /** A PostgreSQL URL; null: SQLite in the server's folder. */
  readonly databaseUrl: string | null;
  readonly engineSocket: string;
  /** The file that lists the engines of several hosts; null: the one engine behind the socket. */
  readonly nodesPath: string | null;
  /** Use the engine behind the socket, or those of the nodes, and never start one. */
  readonly isEngineExternal: boolean;
  /** Passed to an engine that the server starts. */
  readonly engineArguments: readonly string[];
  /** The user of the web-facing process when it is started as root: a user name or `UID:GID`. Null: the installation's own. */
  readonly runAs: string | null;
  readonly restSettings: RestSettings;
  /** The file with the keys that secrets are sealed with. */
  readonly secretsKeyPath: string;
  /** The file with the plans of organizations; null: the plans in the store are kept. */
  readonly plansPath: string | null;
  /** Null: no SSH. */
  readonly ssh: SshSettings | null;
  /** Null: no traces. */
  readonly otel: OtelSettings | null;
  /** This process is the web-facing child of a supervisor. */
  readonly isSupervised: boolean;
  /** Null: not started by systemd. */
  readonly serviceManager: ServiceManager | null;
}

const OPTIONS = {
  path: { type: 'string' },
  host: { type: 'string' },
  port: { type: 'string' },
  dev: { type: 'boolean' },
  'allow-remote-dev': { type: 'boolean' },
  'reset-key': { type: 'boolean' },
  'log-level': { type: 'string' },
  'allowed-host': { type: 'string', multiple: true },
  'cors-origin': { type: 'string', multiple: true },
  'max-body-bytes': { type: 'string' },
  'max-calls': { type: 'string' },
  'rate-limit': { type: 'string' },
  'recovery-time': { type: 'string' },
  'keep-events': { type: 'string' },
  'keep-failed': { type: 'string' },
  'max-orgs-per-user': { type: 'string' },
  'sign-up': { type: 'string' },
  'allow-private-targets': { type: 'boolean' },
  'secrets-key': { type: 'string' },
  plans: { type: 'string' },
  'ssh-port': { type: 'string' },
  'ssh-idle-timeout': { type: 'string' },
  'preview-domain': { type: 'string' },
  'e2b-ports': { type: 'string' },
  'publish-address': { type: 'string', multiple: true },
  'run-as': { type: 'string' },
  database: { type: 'string' },
  'engine-socket': { type: 'string' },
  nodes: { type: 'string' },
  [SUPERVISED]: { type: 'boolean' },
  isolation: { type: 'string' },
  warm: { type: 'string', multiple: true },
  'warm-adaptive': { type: 'string' },
  tuning: { type: 'string' },
  'bind-root': { type: 'string', multiple: true },
  'disk-image-root': { type: 'string', multiple: true },
  'trusted-registry': { type: 'string', multiple: true },
  'insecure-registry': { type: 'string', multiple: true },
  'max-image-gib': { type: 'string' },
  'max-unpack-ratio': { type: 'string' },
  'keep-images': { type: 'string' },
  nameserver: { type: 'string', multiple: true },
  'address-pool': { type: 'string' },
  'ipv6-pool': { type: 'string' },
  'max-packets': { type: 'string' },
  'max-bandwidth': { type: 'string' },
  'network-ceiling': { type: 'string', multiple: true },
} as const;

const ENGINE_OPTIONS = [
  'isolation',
  'warm',
  'warm-adaptive',
  'tuning',
  'bind-root',
  'disk-image-root',
  'trusted-registry',
  'insecure-registry',
  'max-image-gib',
  'max-unpack-ratio',
  'keep-images',
  'nameserver',
  'address-pool',
  'ipv6-pool',
  'max-packets',
  'max-bandwidth',
] as const;
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];
const MAX_CALLS = 1024;
const MAX_PORT = 65_535;
const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;
const MAX_KEPT_DAYS = 36_500;
const MAX_RECOVERY_SECONDS = 30 * 24 * 60 * 60;

/** Reads the command line and the environment once. @throws StartError with every bad value */
export function readConfig(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): ServerConfig {
  const problems: string[] = [];
  const values = parse(args, problems);
  const dataFolder = resolve(values.path ?? env['SVC_HOME'] ?? '/var/lib/svc');
  const host = values.host ?? DEFAULT_HOST;
  const isDev = values.dev ?? false;
  const networkCeilings = readCeilings(values['network-ceiling'] ?? [], { isDev }, problems);
  const config: ServerConfig = {
    dataFolder,
    serverFolder: join(dataFolder, 'server'),
    options: {
      host,
      port: whole('port', values.port, DEFAULT_PORT, MAX_PORT, problems),
      allowedHosts: values['allowed-host'] ?? [],
      corsOrigins: (values['cors-origin'] ?? []).map((origin) => readOrigin(origin, problems)),
      limits: {
        ...DEFAULT_LIMITS,
        maxBodyBytes: readMaxBody(values['max-body-bytes'], problems),
      },
      ...readShownPorts(values, host, problems),
      requestsPerMinute: readRate(values['rate-limit'], problems),
      maxConcurrentCalls: whole('max-calls', values['max-calls'], MAX_CALLS, 1_000_000, problems),
    },
    isDev,
    shouldResetKey: values['reset-key'] ?? false,
    logLevel: readLogLevel(values['log-level'] ?? 'info', problems),
    databaseUrl: readDatabase(values.database ?? env['SVC_DATABASE_URL'], problems),
    ...readEngines(values, dataFolder, highestCeiling(networkCeilings), problems),
    runAs: values['run-as'] ?? null,
    restSettings: {
      ...DEFAULT_REST_SETTINGS,
      publishAddresses: readPublishAddresses(values['publish-address'] ?? [], problems),
      recoveryMs: readRecoveryMs(values['recovery-time'], problems),
      keepEventsMs: readKeepEventsMs(values['keep-events'], problems),
      keepFailedMs: readKeepFailedMs(values['keep-failed'], problems),
      maxOrganizationsPerUser: readMaxOrganizations(values['max-orgs-per-user'], problems),
      signUp: readSignUp(values['sign-up'], problems),
      networkCeilings,
      outbound: { mayReachInside: values['allow-private-targets'] ?? false },
    },
    secretsKeyPath: resolve(values['secrets-key'] ?? join(dataFolder, 'server', 'secrets.key')),
    plansPath: readPlansPath(values.plans, problems),
    ssh: readSsh(values, host, problems),
    otel: readOtelSettings(env, problems),
    isSupervised: values[SUPERVISED] ?? false,
    serviceManager: readServiceManager(env),
  };
  if (config.isDev && !isLoopback(host) && values['allow-remote-dev'] !== true) {
    problems.push(`--dev lets everyone who can reach ${host} in; confirm it with --allow-remote-dev`);
  }
  if (/^\/(proc|sys)(\/|$)/.test(dataFolder))
    problems.push(`--path must be a folder on a disk, not ${dataFolder}, which the kernel makes up`);
  if (problems.length > 0) throw new StartError(EXIT.usage, problems.join('; '));
  return Object.freeze(config);
}

function parse(args: readonly string[], problems: string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, strict: true }).values;
  } catch (error) {
    problems.push(error instanceof Error ? error.message : String(error));
    return parseArgs({ args: [], options: OPTIONS }).values;
  }
}

function whole(
  name: keyof typeof OPTIONS,
  text: string | undefined,
  fallback: number,
  maximum: number,
  problems: string[],
): number {
  if (text === undefined) return fallback;
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (number <= maximum) return number;
  problems.push(`--${name} must be a whole number up to ${maximum}, not ${text}`);
  return fallback;
}

function engineArguments(values: ReturnType<typeof parse>, ceiling: string): readonly string[] {
  const handedOn = ENGINE_OPTIONS.flatMap((name) =>
    [values[name] ?? []].flat().flatMap((value) => [`--${name}`, value]),
  );
  return ceiling === 'all' ? handedOn : [...handedOn, '--network-ceiling', ceiling];
}

function readEngines(
  values: ReturnType<typeof parse>,
  dataFolder: string,
  ceiling: string,
  problems: string[],
): Pick<ServerConfig, 'engineSocket' | 'nodesPath' | 'isEngineExternal' | 'engineArguments'> {
  return {
    engineSocket: values['engine-socket'] ?? join(dataFolder, 'engine.sock'),
    nodesPath: readNodesPath(values, problems),
    isEngineExternal: values['engine-socket'] !== undefined || values.nodes !== undefined,
    engineArguments: engineArguments(values, ceiling),
  };
}

/** Absolute, as that of the plans. The engines of nodes have options of their own. */
function readNodesPath(values: ReturnType<typeof parse>, problems: string[]): string | null {
  const { nodes: path } = values;
  if (path === undefined) return null;
  if (!isAbsolute(path)) problems.push(`--nodes must be an absolute path, not ${path}`);
  if (values['engine-socket'] !== undefined)
    problems.push('--nodes and --engine-socket exclude each other; list the socket as a node, "unix:PATH"');
  for (const name of ENGINE_OPTIONS.filter((option) => values[option] !== undefined))
    problems.push(
      `--${name} is an option of engines; with --nodes give it to \`svc engine start\` of each node`,
    );
  return path;
}

function readMaxBody(text: string | undefined, problems: string[]): number {
  return whole('max-body-bytes', text, DEFAULT_LIMITS.maxBodyBytes, 2 ** 30, problems);
}

function readSignUp(text: string | undefined, problems: string[]): SignUp {
  const found = SIGN_UPS.find((known) => known === (text ?? DEFAULT_REST_SETTINGS.signUp));
  if (found === undefined) problems.push(`--sign-up must be one of ${SIGN_UPS.join(', ')}, not ${text}`);
  return found ?? DEFAULT_REST_SETTINGS.signUp;
}

/** Requests of one organization or user per minute. */
function readRate(text: string | undefined, problems: string[]): number | null {
  return text === undefined ? null : whole('rate-limit', text, 0, 1_000_000_000, problems);
}

function readRecoveryMs(text: string | undefined, problems: string[]): number {
  const fallback = DEFAULT_REST_SETTINGS.recoveryMs / 1000;
  return whole('recovery-time', text, fallback, MAX_RECOVERY_SECONDS, problems) * 1000;
}

/** 0: for ever. */
function readKeepEventsMs(text: string | undefined, problems: string[]): number | null {
  if (text === undefined) return DEFAULT_REST_SETTINGS.keepEventsMs;
  const days = whole('keep-events', text, 0, MAX_KEPT_DAYS, problems);
  return days === 0 ? null : days * DAY_MS;
}

/** 0: for ever. */
function readKeepFailedMs(text: string | undefined, problems: string[]): number | null {
  if (text === undefined) return DEFAULT_REST_SETTINGS.keepFailedMs;
  const hours = whole('keep-failed', text, 0, MAX_KEPT_DAYS * 24, problems);
  return hours === 0 ? null : hours * HOUR_MS;
}

/** 0: no limit. */
function readMaxOrganizations(text: string | undefined, problems: string[]): number | null {
  const fallback = DEFAULT_REST_SETTINGS.maxOrganizationsPerUser ?? 0;
  const count = whole('max-orgs-per-user', text, fallback, 1_000_000, problems);
  return count === 0 ? null : count;
}

/** Absolute, because the web-facing process has another working directory than the operator. */
function readPlansPath(path: string | undefined, problems: string[]): string | null {
  if (path !== undefined && !isAbsolute(path)) problems.push(`--plans must be an absolute path, not ${path}`);
  return path ?? null;
}

function readOrigin(text: string, problems: string[]): string {
  const origin = URL.canParse(text) ? new URL(text).origin : 'null';
  if (origin === 'null') problems.push(`--cors-origin must be like https://example.com, not ${text}`);
  return origin;
}

function readLogLevel(level: string, problems: string[]): string {
  if (!LOG_LEVELS.includes(level))
    problems.push(`--log-level must be one of ${LOG_LEVELS.join(', ')}, not ${level}`);
  return level;
}

/** The URL may hold a password, so it is not repeated in the message. */
function readDatabase(url: string | undefined, problems: string[]): string | null {
  if (url === undefined) return null;
  if (!/^postgres(ql)?:\/\//.test(url)) problems.push('--database must be a postgres:// URL');
  return url;
}
