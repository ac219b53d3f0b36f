import { readFileSync } from 'node:fs';
import type { Rlimit } from '@svc/contract';

/** The largest hard limit that this engine can grant, per resource. An absent resource is unlimited. */
export type RlimitCeilings = ReadonlyMap<Rlimit['resource'], number>;

/**
 * The limits that PID 1 in gVisor starts with, because gVisor's kernel allows no process inside to raise them. Limits that would harm
 * svc-init are left out: it sets them on every process that it starts, which may lower an unlimited resource.
 */
export function rlimitsOfInit(granted: readonly Rlimit[]): readonly Rlimit[] {
  return granted.filter(({ resource }) => !HARMFUL_TO_INIT.has(resource));
}

const HARMFUL_TO_INIT: ReadonlySet<Rlimit['resource']> = new Set([
  'cpu',
  'as',
  'data',
  'stack',
  'fsize',
  'core',
  'rss',
]);

/** Lowers limits that this engine cannot grant: one value above its ceiling would make the runtime refuse the whole start. */
export function grantableRlimits(requested: readonly Rlimit[], ceilings: RlimitCeilings): readonly Rlimit[] {
  return requested.map(({ resource, soft, hard }) => {
    const granted = Math.min(hard, ceilings.get(resource) ?? Infinity);
    return { resource, soft: Math.min(soft, granted), hard: granted };
  });
}

export function readRlimitCeilings(): RlimitCeilings {
  const limits = readFileSync('/proc/self/limits', 'latin1');
  const status = readFileSync('/proc/self/status', 'latin1');
  return rlimitCeilings(limits, status, Number(readFileSync('/proc/sys/fs/nr_open', 'latin1')));
}

/** `openFiles`: the kernel's limit for one process (fs.nr_open), privileged or not. */
export function rlimitCeilings(limits: string, status: string, openFiles: number): RlimitCeilings {
  const ceilings = new Map<Rlimit['resource'], number>();
  for (const [resource, title] of Object.entries(TITLES)) {
    const hard = new RegExp(`^Max ${title}\\s+\\S+\\s+(\\d+)`, 'm').exec(limits)?.[1];
    // SAFETY of the type: the keys of TITLES are checked to be exactly the resources.
    if (hard !== undefined) ceilings.set(resource as Rlimit['resource'], Number(hard));
  }
  // A sandbox gets at most the engine's own limits, except for files, which the kernel bounds for all processes.
  if (canRaiseLimits(status)) ceilings.set('nofile', openFiles);
  return ceilings;
}

/** Titles in /proc/PID/limits. */
const TITLES: Record<Rlimit['resource'], string> = {
  cpu: 'cpu time',
  fsize: 'file size',
  data: 'data size',
  stack: 'stack size',
  core: 'core file size',
  rss: 'resident set',
  nproc: 'processes',
  nofile: 'open files',
  memlock: 'locked memory',
  as: 'address space',
  locks: 'file locks',
  sigpending: 'pending signals',
  msgqueue: 'msgqueue size',
  nice: 'nice priority',
  rtprio: 'realtime priority',
  rttime: 'realtime timeout',
};

const CAP_SYS_RESOURCE = 24n;

export function canRaiseLimits(status: string): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1];
  return effective !== undefined && ((BigInt(`0x${effective}`) >> CAP_SYS_RESOURCE) & 1n) === 1n;
}
