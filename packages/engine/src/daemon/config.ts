import { createHash } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { PlatformError } from '@svc/contract/errors';
import { ISOLATIONS, type Isolation } from '@svc/contract/orchestrator';
import type { TlsFiles } from '../client/tls-credentials.ts';
import { DEFAULT_IMAGE_LIMITS, type ImageLimits } from '../images/image-limits.ts';
import { DEFAULT_MAX_PACKETS } from '../network/packet-limit.ts';
import { readCeiling } from '../policy/ceiling.ts';
import { runtimePrograms } from '../runtime/runtimes.ts';
import type { WarmTarget } from '../sandboxes/warm-pool.ts';

const PACKAGES = resolve(dirname(fileURLToPath(import.meta.url)), '../../..');

const GIB = 2 ** 30;
const DAY_MS = 24 * 60 * 60_000;
const DEFAULT_IMAGE_GIB = DEFAULT_IMAGE_LIMITS.maxUnpackedBytes / GIB;
const KEEP_IMAGES_DAYS = 7;
const WARM_ADAPTIVE = 3;

export interface EngineConfig {
  /** Data that must survive a restart of the host. */
  readonly dataFolder: string;
  /** A tmpfs of this engine: sockets and namespaces of this boot. */
  readonly runFolder: string;
  readonly socketPath: string;
  /** A TCP port for servers elsewhere, with the files of its TLS; null: none. */
  readonly listenOn: { readonly host: string; readonly port: number } | null;
  readonly tlsFiles: TlsFiles | null;
  /** The user that may connect besides root; null: root only. */
  readonly socketOwner: { readonly uid: number; readonly gid: number } | null;
  /** Tells engines on one host apart: part of the names of nft tables and the like. */
  readonly instance: string;
  readonly logLevel: string;
  /** Null: the engine picks one that is unused on this host. */
  readonly addressPool: string | null;
  /** Null: sandboxes have no IPv6. */
  readonly ipv6Pool: string | null;
  readonly isolation: Isolation | 'auto';
  readonly runtimePaths: ReturnType<typeof runtimePrograms>;
  /** Whether mechanisms that only make sandboxes faster or cheaper are on. */
  readonly isTuned: boolean;
  readonly warm: readonly WarmTarget[];
  /** Maximum number of sandboxes that are kept started for recently requested kinds. */
  readonly warmAdaptive: number;
  readonly preparedSlots: number;
  readonly preparedDisks: number;
  readonly bindRoots: readonly string[];
  /** Folders of disk images that the kernel may mount; separate from the bind roots. */
  readonly diskImageRoots: readonly string[];
  readonly insecureRegistries: readonly string[];
  /** Registries in private networks; connections to all others can reach public addresses only. */
  readonly trustedRegistries: readonly string[];
  /** Limits for images that differ from the default. */
  readonly imageLimits: Partial<ImageLimits>;
  /** How long an unused image of a scope is kept; null: forever. */
  readonly keepImagesMs: number | null;
  readonly nameservers: readonly string[];
  readonly maxProcesses: number;
  /** Packets per second of a sandbox, in each direction. */
  readonly maxPackets: number;
  /** MiB per second, likewise; null: no limit. */
  readonly maxMib: number | null;
  /** Upper bound for what sandboxes may reach. */
  readonly networkCeiling: readonly string[];
  /** Node's compile cache for the Node processes of the engine; null: none. */
  readonly codeCache: string | null;
  /** PATH of this process. */
  readonly path: string;
  /** HTTP_PROXY and the like, for tools that download. */
  readonly proxy: Readonly<Record<string, string>>;
  readonly initProgram: string;
  readonly hostProgram: string;
}

const OPTIONS = {
  path: { type: 'string' },
  'address-pool': { type: 'string' },
  'ipv6-pool': { type: 'string' },
  isolation: { type: 'string' },
  'log-level': { type: 'string' },
  tuning: { type: 'string' },
  warm: { type: 'string', multiple: true },
  'warm-adaptive': { type: 'string' },
  'bind-root': { type: 'string', multiple: true },
  'disk-image-root': { type: 'string', multiple: true },
  'insecure-registry': { type: 'string', multiple: true },
  'trusted-registry': { type: 'string', multiple: true },
  'max-image-gib': { type: 'string' },
  'max-unpack-ratio': { type: 'string' },
  'keep-images': { type: 'string' },
  nameserver: { type: 'string', multiple: true },
  'prepared-slots': { type: 'string' },
  'prepared-disks': { type: 'string' },
  'max-processes': { type: 'string' },
  'max-packets': { type: 'string' },
  'max-bandwidth': { type: 'string' },
  'network-ceiling': { type: 'string' },
  socket: { type: 'string' },
  'socket-owner': { type: 'string' },
  listen: { type: 'string' },
  'tls-cert': { type: 'string' },
  'tls-key': { type: 'string' },
  'tls-ca': { type: 'string' },
  // Marks the engine as started by a server; servers and commands read it from the command line.
  supervised: { type: 'boolean' },
} as const;

/** Parses the command line and the environment once; reports every bad value together. */
export function readConfig(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): EngineConfig {
  const problems: string[] = [];
  const { values } = parseArgs({ args: [...args], options: OPTIONS, strict: true });
  const dataFolder = resolve(values.path ?? env['SVC_HOME'] ?? '/var/lib/svc');
  const instance = createHash('sha256').update(dataFolder).digest('hex').slice(0, 8);
  const whole = (name: keyof typeof OPTIONS, text: string | undefined, fallback: number) => {
    const number = text === undefined ? fallback : Number(text);
    if (!Number.isInteger(number) || number < 0)
      problems.push(`--${name} must be a whole number, not ${text}`);
    return number;
  };
  const config: EngineConfig = {
    dataFolder,
    runFolder: join('/run/svc', instance),
    socketPath: values.socket ?? join(dataFolder, 'engine.sock'),
    socketOwner: readOwner(values['socket-owner'], problems),
    ...readListen(values, problems),
    instance,
    logLevel: oneOf('log-level', values['log-level'] ?? 'info', LOG_LEVELS, problems),
    addressPool: values['address-pool'] ?? null,
    ipv6Pool: values['ipv6-pool'] ?? null,
    isolation: oneOf('isolation', values.isolation ?? 'auto', ['auto', ...ISOLATIONS], problems),
    runtimePaths: runtimePrograms(env),
    isTuned: oneOf('tuning', values.tuning ?? 'on', ['on', 'off'], problems) === 'on',
    warm: (values.warm ?? []).map((text) => readWarm(text, problems)),
    warmAdaptive: whole('warm-adaptive', values['warm-adaptive'] ?? env['SVC_WARM_ADAPTIVE'], WARM_ADAPTIVE),
    preparedSlots: whole('prepared-slots', values['prepared-slots'], 4),
    preparedDisks: whole('prepared-disks', values['prepared-disks'], 4),
    bindRoots: (values['bind-root'] ?? []).map((root) => absolute('bind-root', root, problems)),
    diskImageRoots: (values['disk-image-root'] ?? []).map((root) =>
      absolute('disk-image-root', root, problems),
    ),
    insecureRegistries: values['insecure-registry'] ?? [],
    trustedRegistries: values['trusted-registry'] ?? [],
    ...readImages(values, whole),
    nameservers: values.nameserver ?? [],
    maxProcesses: whole('max-processes', values['max-processes'], 1024),
    ...readTraffic(values, problems),
    codeCache: env['NODE_COMPILE_CACHE'] ?? null,
    path: env['PATH'] ?? '',
    proxy: readProxy(env),
    initProgram: env['SVC_INIT'] ?? join(PACKAGES, 'init/build/svc-init'),
    hostProgram: env['SVC_HOST'] ?? join(PACKAGES, 'host/build/svc-host'),
  };
  for (const { image, bind } of overlaps(config)) {
    problems.push(
      `--disk-image-root ${image} overlaps --bind-root ${bind}: sandboxes could write the images`,
    );
  }
  if (/^\/(proc|sys)(\/|$)/.test(dataFolder))
    problems.push(`--path must be a folder on a disk, not ${dataFolder}, which the kernel makes up`);
  if (problems.length > 0) throw new PlatformError('invalid_request', problems.join('; '));
  return Object.freeze(config);
}

function readImages(
  values: {
    readonly 'max-image-gib'?: string | undefined;
    readonly 'max-unpack-ratio'?: string | undefined;
    readonly 'keep-images'?: string | undefined;
  },
  whole: (name: keyof typeof values, text: string | undefined, fallback: number) => number,
): Pick<EngineConfig, 'imageLimits' | 'keepImagesMs'> {
  const gib = whole('max-image-gib', values['max-image-gib'], DEFAULT_IMAGE_GIB);
  const { maxUnpackRatio: ratio } = DEFAULT_IMAGE_LIMITS;
  const maxUnpackRatio = whole('max-unpack-ratio', values['max-unpack-ratio'], ratio);
  const days = whole('keep-images', values['keep-images'], KEEP_IMAGES_DAYS);
  return {
    imageLimits: { maxUnpackedBytes: gib * GIB, maxUnpackRatio },
    keepImagesMs: days === 0 ? null : days * DAY_MS,
  };
}

function readProxy(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'no_proxy'];
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

function oneOf<T extends string>(name: string, value: string, allowed: readonly T[], problems: string[]): T {
  const found = allowed.find((candidate) => candidate === value);
  if (found === undefined) problems.push(`--${name} must be one of ${allowed.join(', ')}, not ${value}`);
  return found ?? (allowed[0] as T);
}

/** `UID:GID` */
function readOwner(text: string | undefined, problems: string[]): EngineConfig['socketOwner'] {
  if (text === undefined) return null;
  const match = /^(?<uid>\d+):(?<gid>\d+)$/.exec(text);
  if (match?.groups === undefined) problems.push(`--socket-owner must be UID:GID, not ${text}`);
  return { uid: Number(match?.groups?.['uid'] ?? 0), gid: Number(match?.groups?.['gid'] ?? 0) };
}

function readListen(
  values: {
    readonly listen?: string | undefined;
    readonly 'tls-cert'?: string | undefined;
    readonly 'tls-key'?: string | undefined;
    readonly 'tls-ca'?: string | undefined;
  },
  problems: string[],
): Pick<EngineConfig, 'listenOn' | 'tlsFiles'> {
  const { listen, 'tls-cert': cert, 'tls-key': key, 'tls-ca': ca } = values;
  const given = [cert, key, ca].filter((path) => path !== undefined);
  if (listen === undefined) {
    if (given.length > 0) problems.push('--tls-cert, --tls-key and --tls-ca belong to --listen HOST:PORT');
    return { listenOn: null, tlsFiles: null };
  }
  const { host, address, port } = PLACE.exec(listen)?.groups ?? {};
  const isPort = port !== undefined && Number(port) <= MAX_PORT;
  if (!isPort || (address !== undefined && !isIPv6(address)))
    problems.push(`--listen must be HOST:PORT, such as 192.0.2.7:7443 or [2001:db8::7]:7443, not ${listen}`);
  const listenOn = { host: address ?? host ?? '', port: Number(port) };
  if (cert !== undefined && key !== undefined && ca !== undefined)
    return { listenOn, tlsFiles: { cert: resolve(cert), key: resolve(key), ca: resolve(ca) } };
  problems.push('--listen needs --tls-cert, --tls-key and --tls-ca; give all three');
  return { listenOn, tlsFiles: null };
}

const PLACE = /^(?:(?<host>[A-Za-z0-9.-]+)|\[(?<address>[0-9a-fA-F:.]+)\]):(?<port>\d{1,5})$/;
const MAX_PORT = 65_535;

function absolute(name: string, path: string, problems: string[]): string {
  if (!isAbsolute(path)) problems.push(`--${name} must be an absolute path, not ${path}`);
  return resolve(path);
}

function overlaps({ diskImageRoots, bindRoots }: EngineConfig): { image: string; bind: string }[] {
  const isInside = (path: string, folder: string) => `${path}/`.startsWith(`${folder}/`);
  return diskImageRoots.flatMap((image) =>
    bindRoots
      .filter((bind) => isInside(image, bind) || isInside(bind, image))
      .map((bind) => ({ image, bind })),
  );
}

/** `IMAGE=COUNT` or `IMAGE=COUNT@CLASS` */
function readWarm(text: string, problems: string[]): WarmTarget {
  const match = /^(?<reference>[^=]+)=(?<count>\d+)(?:@(?<isolation>container|gvisor|microvm))?$/.exec(text);
  if (match?.groups === undefined) {
    problems.push(`--warm must be IMAGE=COUNT or IMAGE=COUNT@CLASS, not ${text}`);
    return { reference: '', count: 0 };
  }
  const { reference = '', count = '0', isolation } = match.groups;
  // The pattern allows no other class.
  return { reference, count: Number(count), isolation: isolation as Isolation | undefined };
}

function readTraffic(
  values: {
    readonly 'max-packets'?: string | undefined;
    readonly 'max-bandwidth'?: string | undefined;
    readonly 'network-ceiling'?: string | undefined;
  },
  problems: string[],
): Pick<EngineConfig, 'maxPackets' | 'maxMib' | 'networkCeiling'> {
  return {
    maxPackets: readMaxPackets(values['max-packets'], problems),
    maxMib: readMaxBandwidth(values['max-bandwidth'], problems),
    networkCeiling: readNetworkCeiling(values['network-ceiling'] ?? 'all', problems),
  };
}

const [FEWEST_PACKETS, MOST_PACKETS] = [10, 100_000_000];

function readMaxPackets(text: string | undefined, problems: string[]): number {
  const count = text === undefined ? DEFAULT_MAX_PACKETS : Number(text);
  if (!Number.isInteger(count) || count < FEWEST_PACKETS || count > MOST_PACKETS)
    problems.push(
      `--max-packets must be a whole number from ${FEWEST_PACKETS} to ${MOST_PACKETS}, not ${text}`,
    );
  return count;
}

function readNetworkCeiling(text: string, problems: string[]): readonly string[] {
  try {
    return readCeiling(text);
  } catch (error) {
    problems.push(`--network-ceiling: ${error instanceof Error ? error.message : String(error)}`);
    return [];
  }
}

/** More than a host forwards. */
const MOST_MIB = 1_000_000;

function readMaxBandwidth(text: string | undefined, problems: string[]): number | null {
  if (text === undefined) return null;
  const mib = Number(text);
  if (!Number.isInteger(mib) || mib < 1 || mib > MOST_MIB)
    problems.push(`--max-bandwidth must be a whole number of MiB from 1 to ${MOST_MIB}, not ${text}`);
  return mib;
}
