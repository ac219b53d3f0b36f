import type { OciMount } from './oci-config.ts';
import { GUEST_FOLDER } from './oci-config.ts';
import type { RuntimeMount, RuntimeSpec } from './runtime.ts';

/** The file systems of every sandbox, in the order they are mounted. */
export function systemMounts(spec: RuntimeSpec, ptsOptions: readonly string[] = PTS_OPTIONS): OciMount[] {
  return [
    { destination: '/proc', type: 'proc', source: 'proc', options: ['nosuid', 'noexec', 'nodev'] },
    { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: DEV_OPTIONS },
    { destination: '/dev/pts', type: 'devpts', source: 'devpts', options: ptsOptions },
    { destination: '/dev/shm', type: 'tmpfs', source: 'shm', options: shmOptions(spec.memoryMib) },
    { destination: '/dev/mqueue', type: 'mqueue', source: 'mqueue', options: ['nosuid', 'noexec', 'nodev'] },
    { destination: '/sys', type: 'sysfs', source: 'sysfs', options: ['nosuid', 'noexec', 'nodev', 'ro'] },
  ];
}

/** Limits the terminals of one sandbox; the host's kernel has one table of them for all. */
export function boundedTerminals(): readonly string[] {
  return [...PTS_OPTIONS, `max=${MAX_TERMINALS}`];
}

/** The mounts of the spec, then our own folder, so that no mount can cover it. */
export function requestedMounts(spec: RuntimeSpec): OciMount[] {
  const guest = boundReadonly(spec.guestFolder, GUEST_FOLDER);
  return [...spec.mounts.map((mount) => requestedMount(mount, spec.memoryMib)), guest];
}

export function boundReadonly(source: string, destination: string): OciMount {
  return { destination, type: 'bind', source, options: ['bind', 'ro', 'nosuid', 'nodev'] };
}

const DEV_OPTIONS = ['nosuid', 'noexec', 'strictatime', 'mode=755', 'size=1m', 'nr_inodes=1024'];
const MAX_TERMINALS = 256;
const PTS_OPTIONS = ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620', 'gid=5'];

/** Half of the memory, the default on a machine of that size. Its pages count as memory of the sandbox. */
function shmOptions(memoryMib: number): readonly string[] {
  return ['nosuid', 'noexec', 'nodev', 'mode=1777', `size=${Math.max(1, Math.floor(memoryMib / 2))}m`];
}

function requestedMount(mount: RuntimeMount, memoryMib: number): OciMount {
  const flags = [
    mount.readonly ? 'ro' : 'rw',
    ...(mount.nosuid ? ['nosuid'] : []),
    ...(mount.nodev ? ['nodev'] : []),
    ...(mount.noexec ? ['noexec'] : []),
  ];
  const { destination } = mount;
  if (mount.source !== null) {
    return { destination, type: 'bind', source: mount.source, options: ['bind', ...flags] };
  }
  const size = `size=${mount.sizeMib ?? memoryMib}m`;
  // Guest ids, because the runtime mounts it inside the user namespace.
  const owner = mount.owner === null ? [] : [`uid=${mount.owner.uid}`, `gid=${mount.owner.gid}`];
  return { destination, type: 'tmpfs', source: 'tmpfs', options: [...flags, 'mode=1777', size, ...owner] };
}
