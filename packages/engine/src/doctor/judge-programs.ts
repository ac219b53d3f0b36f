import type { Finding, Status } from './finding.ts';
import { findingsOf } from './finding.ts';

interface Program {
  /** The feature that needs it. */
  readonly use: string;
  readonly without: Status;
  readonly remedy: string;
}

/** Every program that the engine starts, besides the runtimes. */
export const PROGRAMS: Readonly<Record<string, Program>> = {
  'svc-init': { use: 'PID 1 of every sandbox', without: 'missing', remedy: 'make build' },
  'svc-host': { use: "the engine's helper for kernel calls", without: 'missing', remedy: 'make build' },
  tini: { use: 'reaps what runtimes leave behind', without: 'missing', remedy: 'apt-get install tini' },
  setpriv: {
    use: 'ends the engine together with tini',
    without: 'missing',
    remedy: 'apt-get install util-linux',
  },
  nft: { use: 'keeps sandboxes from networks', without: 'missing', remedy: 'apt-get install nftables' },
  conntrack: {
    use: 'ends connections that a network policy denies; only sandboxes with the default policy start without it',
    without: 'warn',
    remedy: 'apt-get install conntrack',
  },
  'mkfs.ext4': { use: 'makes disks', without: 'missing', remedy: 'apt-get install e2fsprogs' },
  'archive-program': { use: 'reads the headers of layers', without: 'missing', remedy: 'make build' },
  tar: { use: 'unpacks layers', without: 'missing', remedy: 'apt-get install tar' },
  bwrap: {
    use: 'confines the tools that read images',
    without: 'warn',
    remedy: 'apt-get install bubblewrap',
  },
  zstd: { use: 'reads compressed layers', without: 'warn', remedy: 'apt-get install zstd' },
  skopeo: { use: 'pulls images', without: 'warn', remedy: 'apt-get install skopeo' },
  'qemu-img': {
    use: 'reads qcow2 and vmdk disk images',
    without: 'warn',
    remedy: 'apt-get install qemu-utils',
  },
  mmdebstrap: { use: 'makes demo images', without: 'warn', remedy: 'apt-get install mmdebstrap' },
};

export function judgePrograms(found: Readonly<Record<string, string | null>>): readonly Finding[] {
  const finding = findingsOf('programs');
  return Object.entries(PROGRAMS).map(([name, { use, without, remedy }]) => {
    const path = found[name] ?? null;
    return path === null
      ? finding(name, without, `not found; it ${startsWithVerb(use) ? use : `is ${use}`}`, remedy)
      : finding(name, 'ok', path);
  });
}

function startsWithVerb(use: string): boolean {
  return /^[a-z]+s /.test(use);
}
