import type { Finding } from './finding.ts';
import { findingsOf } from './finding.ts';
import type { HostFacts } from './host-facts.ts';

const GIB = 1024 ** 3;
/** Room for an image and a few sandboxes. */
const LITTLE_DISK_BYTES = 5 * GIB;
const NO_DISK_BYTES = GIB / 2;
/** Room for two sandboxes of the default size. */
const LITTLE_MEMORY_BYTES = GIB;

export function judgeSpace({
  diskFault,
  freeDiskBytes,
  promisedDiskBytes,
  totalMemoryBytes,
  availableMemoryBytes,
}: HostFacts): readonly Finding[] {
  const finding = findingsOf('space');
  const promised = `its disks and volumes may grow by ${gib(promisedDiskBytes)}`;
  const free = `${gib(freeDiskBytes)} free for the data folder; ${promised}`;
  const memory = `${gib(availableMemoryBytes)} of ${gib(totalMemoryBytes)} available`;
  const disk =
    diskFault !== null
      ? finding('disk', 'missing', `the data folder takes no writes: ${diskFault}`, REPAIR)
      : freeDiskBytes < NO_DISK_BYTES
        ? finding('disk', 'missing', free, 'free some space, or choose another folder with --path')
        : freeDiskBytes < LITTLE_DISK_BYTES
          ? finding('disk', 'warn', free, 'svc image prune, or choose another folder with --path')
          : promisedDiskBytes > freeDiskBytes
            ? finding(
                'disk',
                'warn',
                free,
                'remove what is not needed, or give the data folder a larger disk',
              )
            : finding('disk', 'ok', free);
  return [
    disk,
    availableMemoryBytes < LITTLE_MEMORY_BYTES
      ? finding('memory', 'warn', memory, 'stop sandboxes that are not needed: svc ls')
      : finding('memory', 'ok', memory),
  ];
}

const REPAIR =
  'dmesg says what failed, and findmnt -T DATA_FOLDER which disk it is; stop svc, unmount and fsck the disk, mount it again (or reboot), then start svc: docs/operating/disk.md';

function gib(bytes: number): string {
  return `${(bytes / GIB).toFixed(1)} GiB`;
}
