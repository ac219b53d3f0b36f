import { mkdirSync, readFileSync, statfsSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { join } from 'node:path';
import { DEFAULT_DISK_MIB } from '@svc/contract/spec';
import { FairSemaphore } from '@svc/contract/async';
import type { Logger } from 'pino';
import { Cgroups } from '../cgroup/cgroups.ts';
import { EventLog } from '../events/event-log.ts';
import { GuestFolders } from '../guest/guest-folders.ts';
import { TokenBuckets } from '../guest/token-buckets.ts';
import { SvcHostCalls } from '../host/svc-host-calls.ts';
import { ImageStore } from '../images/image-store.ts';
import type { IsImageInUse } from '../images/images.ts';
import type { PublicNetwork } from '../images/registry.ts';
import { chooseAddressPool } from '../network/choose-address-pool.ts';
import { LinuxNetwork } from '../network/linux-network.ts';
import { LiveDisks } from '../rootfs/live-disk.ts';
import { OverlayRootfs } from '../rootfs/overlay-rootfs.ts';
import { CpuAllocator } from '../runtime/cpu-allocator.ts';
import { readHostAbilities } from '../runtime/host-abilities.ts';
import { renderCpuinfo, renderCpuOnline, renderMeminfo } from '../runtime/proc-files.ts';
import { RUNTIMES } from '../runtime/runtimes.ts';
import { parseCeiling } from '../policy/ceiling.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { HostSize } from '../sandboxes/check-size.ts';
import type { Kit } from '../sandboxes/kit.ts';
import { RecordFiles } from '../sandboxes/record-files.ts';
import { SecretFiles } from '../sandboxes/secret-values.ts';
import { DirectWrites } from '../space/direct-writes.ts';
import { HostSpace } from '../space/host-space.ts';
import { Snapshots } from '../snapshots/snapshots.ts';
import { openConfinedFolder } from '../volumes/confined-folder.ts';
import { raiseKernelPriority } from '../tuning/kernel-priority.ts';
import { QuickMoves } from '../tuning/quick-moves.ts';
import { DiskVolumes } from '../volumes/disk-volumes.ts';
import type { EngineConfig } from './config.ts';
import { chooseRuntimes, type ProbedRuntime } from './choose-runtimes.ts';
import { ProbeMemory } from './probe-memory.ts';

/**
 * Short names, and the images that older clients ask for by default, stand for the demo images of this host
 * (`svc image build-demo`) when those exist.
 */
const IMAGE_ALIASES: Readonly<Record<string, string>> = {
  base: 'svc/base',
  python: 'svc/python',
  node: 'svc/node',
  code: 'svc/code',
  data: 'svc/code',
  'microsandbox/python': 'svc/python',
  'microsandbox/node': 'svc/node',
};

const IDS_PER_SLOT = 65_536;
/** First of the host ids that sandboxes are mapped to: far above users, system accounts and container tools. */
const LOWEST_HOST_ID = 0x1000_0000;
/** Engines on one host begin at different ids, so that their sandboxes are different users. */
const ENGINE_BLOCKS = 14;
const SLOTS_PER_BLOCK = 4096;
/** Used by probes only; its range lies below the first slot's. */
const PROBE_SLOTS_BELOW = 2;

/** Half of them for one organization alone: more at once take as long in all, and each of them longer. */
const [MIN_STARTS, STARTS_PER_CPU] = [32, 16];

const TIME_LIMITS = { startTimeoutMs: 60_000, stopGraceMs: 10_000, reconnectMs: 10_000 };

/** The kit, with what only the daemon itself asks for. */
export interface HostKit extends Kit {
  readonly probes: readonly ProbedRuntime[];
  readonly cgroups: Cgroups;
  readonly space: HostSpace;
  readonly liveDisks: LiveDisks;
}

/** Constructs every adapter of this host. Only this file does. Rejects when `signal` aborts, and leaves nothing running. */
export async function buildKit(
  config: EngineConfig,
  logger: Logger,
  isImageInUse: IsImageInUse,
  signal: AbortSignal,
): Promise<HostKit> {
  const { dataFolder, runFolder } = config;
  const hostCalls = new SvcHostCalls({ binary: config.hostProgram });
  const space = makeSpace(dataFolder, hostCalls, logger);
  const liveDisks = new LiveDisks(dataFolder, hostCalls);
  // Before anything is written, so that a full disk gets its reserved space back first.
  space.start();
  const { cpus, ...host } = readHostResources();
  const guestFolders = new GuestFolders(runFolder);
  await guestFolders.prepare(config.initProgram);
  const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  const memory = await ProbeMemory.open(dataFolder, config.path, bootId);
  const probed = await chooseRuntimes(
    makeRuntimes(config, { hostCalls, cgroups: host.cgroups, cpus }),
    config.isolation,
    logger,
    signal,
    (runtime, probe) =>
      memory.probe([programOf(config, runtime), config.initProgram, config.hostProgram], probe),
  );
  const volumes = makeVolumes(config, hostCalls, space, logger);
  const network = await makeNetwork(config, hostCalls, logger);
  return {
    bootId,
    logger,
    records: new RecordFiles(join(dataFolder, 'sandboxes')),
    secrets: new SecretFiles(join(runFolder, 'secrets')),
    events: new EventLog(),
    images: makeImages(config, isImageInUse, network, space),
    space,
    liveDisks,
    rootfs: makeRootfs(config, hostCalls, liveDisks, space, logger),
    snapshots: new Snapshots(join(dataFolder, 'snapshots'), logger),
    network,
    volumes,
    guestFolders,
    tokenBuckets: new TokenBuckets(),
    ...probed,
    ...host,
    tuning: config.isTuned ? { quickMoves: new QuickMoves(host.cgroups.layout), raiseKernelPriority } : null,
    mounts: {
      hostCalls,
      volumes,
      bindRoots: config.bindRoots,
      diskImageRoots: config.diskImageRoots,
      rawCopyFolder: join(dataFolder, 'raw-copies'),
      stagingFolder: join(runFolder, 'staging'),
      openFolder: (folder, signal) => openConfinedFolder(config.initProgram, folder, signal),
    },
    readHostSize: () => readHostSize(dataFolder),
    procContent: procContent(),
    startPlaces: new FairSemaphore(Math.max(MIN_STARTS, STARTS_PER_CPU * availableParallelism())),
    limits: { ...TIME_LIMITS, maxProcesses: config.maxProcesses },
  };
}

/** The cgroups, resource limits and CPUs of this host. */
function readHostResources() {
  const cgroups = new Cgroups();
  const { cpus, rlimits } = readHostAbilities(cgroups.layout);
  return {
    cgroups,
    cpus: new CpuAllocator(cpus.length),
    rlimitCeilings: rlimits,
  };
}

/** A file of ext4 ends at 16 TiB, and a disk is a file with its metadata. */
const MAX_DISK_MIB = 15 * 2 ** 20;

/** Synchronous, because the kernel answers these calls from memory without waiting for a disk. */
function readHostSize(dataFolder: string): HostSize {
  const { blocks, bsize } = statfsSync(dataFolder);
  return {
    vcpus: availableParallelism(),
    memoryMib: Math.floor(totalmem() / 2 ** 20),
    diskMib: Math.min(Math.floor((blocks * bsize) / 2 ** 20), MAX_DISK_MIB),
  };
}

function makeSpace(folder: string, hostCalls: SvcHostCalls, logger: Logger): HostSpace {
  const writes = new DirectWrites(folder, hostCalls, logger);
  return new HostSpace({ folder, logger, onWatch: (disk) => writes.begin(disk) });
}

function makeVolumes(
  { dataFolder, initProgram }: EngineConfig,
  hostCalls: SvcHostCalls,
  space: HostSpace,
  logger: Logger,
): DiskVolumes {
  return new DiskVolumes({ folder: join(dataFolder, 'volumes'), hostCalls, initProgram, space, logger });
}

/** For as many creates as a client makes one after the other without a pause. */
const READY_DISKS = 3;

function makeRootfs(
  { dataFolder, runFolder }: EngineConfig,
  hostCalls: SvcHostCalls,
  liveDisks: LiveDisks,
  space: HostSpace,
  logger: Logger,
): OverlayRootfs {
  return new OverlayRootfs({
    folder: join(dataFolder, 'rootfs'),
    mountFolder: join(runFolder, 'rootfs'),
    hostCalls,
    liveDisks,
    space,
    defaultSizeMib: DEFAULT_DISK_MIB,
    readyDisks: READY_DISKS,
    logger,
  });
}

async function makeNetwork(
  config: EngineConfig,
  hostCalls: SvcHostCalls,
  logger: Logger,
): Promise<LinuxNetwork> {
  const { runFolder, instance } = config;
  return new LinuxNetwork({
    hostProgram: config.hostProgram,
    runFolder: join(runFolder, 'network'),
    authorityFile: join(config.dataFolder, 'authority.pem'),
    hostCalls,
    addressPool: config.addressPool ?? (await chooseAddressPool(runFolder, instance)),
    ipv6Pool: config.ipv6Pool,
    instance,
    firstHostId: firstHostId(instance),
    prepared: { public: config.preparedSlots, loopback: Math.min(1, config.preparedSlots) },
    maxPackets: config.maxPackets,
    maxMib: config.maxMib,
    ceiling: parseCeiling(config.networkCeiling),
    codeCache: config.codeCache,
    logger,
    ...(config.nameservers.length === 0 ? {} : { resolvers: config.nameservers.map(readNameserver) }),
  });
}

function firstHostId(instance: string): number {
  return LOWEST_HOST_ID + (Number.parseInt(instance, 16) % ENGINE_BLOCKS) * SLOTS_PER_BLOCK * IDS_PER_SLOT;
}

function makeImages(
  config: EngineConfig,
  isInUse: IsImageInUse,
  network: LinuxNetwork,
  space: HostSpace,
): ImageStore {
  const { insecureRegistries: insecure, trustedRegistries: trusted, proxy } = config;
  return new ImageStore({
    folder: join(config.dataFolder, 'images'),
    isInUse,
    limits: config.imageLimits,
    space,
    aliases: IMAGE_ALIASES,
    registries: {
      insecure,
      trusted,
      proxy,
      publicNetwork: (signal) => lendPublicNetwork(network, signal),
    },
  });
}

/** The network of a sandbox, for a program that caller-given names must not lead further than a sandbox. */
async function lendPublicNetwork(network: LinuxNetwork, signal: AbortSignal): Promise<PublicNetwork> {
  const { key, networkNamespace: namespace, link } = await network.acquire('public', signal);
  return {
    namespace,
    nameserver: link?.nameserver ?? '',
    [Symbol.asyncDispose]: () => network.release(key),
  };
}

function programOf({ runtimePaths }: EngineConfig, { name }: Runtime): string {
  return new Map(Object.entries(runtimePaths)).get(name) ?? name;
}

function makeRuntimes(
  config: EngineConfig,
  means: { readonly hostCalls: SvcHostCalls; readonly cgroups: Cgroups; readonly cpus: CpuAllocator },
): Runtime[] {
  const probe = {
    hostCalls: means.hostCalls,
    initProgram: config.initProgram,
    folder: join(config.runFolder, 'probe'),
    idBase: firstHostId(config.instance) - PROBE_SLOTS_BELOW * IDS_PER_SLOT,
  };
  mkdirSync(probe.folder, { recursive: true, mode: 0o711 });
  return RUNTIMES.map(({ name, create }) =>
    create({ ...means, folder: join(config.runFolder, name), probe, program: config.runtimePaths[name] }),
  );
}

function procContent(): Kit['procContent'] {
  const hostCpuinfo = readFileSync('/proc/cpuinfo', 'utf8');
  const cpus = availableParallelism();
  return ({ vcpus, memoryMib }) => ({
    meminfo: renderMeminfo(memoryMib * 1024 * 1024, 0),
    cpuinfo: renderCpuinfo(hostCpuinfo, vcpus),
    cpuOnline: renderCpuOnline(cpus, vcpus),
  });
}

function readNameserver(text: string): { address: string; port: number } {
  const match = /^(?<address>.+?)(?:#(?<port>\d+))?$/.exec(text);
  return { address: match?.groups?.['address'] ?? text, port: Number(match?.groups?.['port'] ?? 53) };
}
