import { readFileSync } from 'node:fs';
import type { Rlimit } from '@svc/contract';

/** The largest hard limit that this engine can give a sandbox, per resource. A resource that is absent has none. */
export type RlimitCeilings = ReadonlyMap<Rlimit['resource'], number>;

/**
 * Those that PID 1 in gVisor starts with, whose kernel lets nothing inside raise them. Not those that would harm it: it is ours and sets them on every process that it starts, and a
 * process can always lower what nobody limits.
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

/** Lowers what this engine may not grant: one value beyond its ceiling would make the runtime refuse the whole start. */
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

/** `openFiles`: what the kernel allows one process at most (fs.nr_open), privileged or not. */
export function rlimitCeilings(limits: string, status: string, openFiles: number): RlimitCeilings {
  const ceilings = new Map<Rlimit['resource'], number>();
  for (const [resource, title] of Object.entries(TITLES)) {
    const hard = new RegExp(`^Max ${title}\\s+\\S+\\s+(\\d+)`, 'm').exec(limits)?.[1];
    // SAFETY of the type: the keys of TITLES are checked to be exactly the resources.
    if (hard !== undefined) ceilings.set(resource as Rlimit['resource'], Number(hard));
  }
  // A sandbox gets no more than the engine itself has, except for files, which the kernel bounds for everybody.
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
