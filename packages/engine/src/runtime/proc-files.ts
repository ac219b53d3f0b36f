/** The content of /proc/meminfo for a sandbox that shares the host's kernel, whose own file describes the whole machine. */
export function renderMeminfo(limitBytes: number, usedBytes: number): string {
  const total = toKib(limitBytes);
  const free = Math.max(0, total - toKib(usedBytes));
  const lines: readonly (readonly [string, number])[] = [
    ['MemTotal', total],
    ['MemFree', free],
    ['MemAvailable', free],
    ['Buffers', 0],
    ['Cached', 0],
    ['SwapCached', 0],
    ['Active', total - free],
    ['Inactive', 0],
    ['SwapTotal', 0],
    ['SwapFree', 0],
    ['Dirty', 0],
    ['Writeback', 0],
    ['AnonPages', total - free],
    ['Mapped', 0],
    ['Shmem', 0],
    ['Slab', 0],
    ['SReclaimable', 0],
    ['SUnreclaim', 0],
  ];
  return lines.map(([key, kib]) => `${`${key}:`.padEnd(16)}${String(kib).padStart(8)} kB\n`).join('');
}

/** The first `vcpus` processors of the host's /proc/cpuinfo, numbered as one package. */
export function renderCpuinfo(hostCpuinfo: string, vcpus: number): string {
  const blocks = hostCpuinfo.split('\n\n').filter((block) => block.startsWith('processor'));
  const count = Math.min(vcpus, blocks.length);
  return blocks
    .slice(0, count)
    .map((block, index) => `${renumbered(block, index, count)}\n\n`)
    .join('');
}

/** The content of /sys/devices/system/cpu/online, where the C library counts processors. */
export function renderCpuOnline(hostCpus: number, vcpus: number): string {
  const count = Math.min(vcpus, hostCpus);
  return count === 1 ? '0\n' : `0-${count - 1}\n`;
}

function renumbered(block: string, index: number, count: number): string {
  const values: Record<string, number> = {
    processor: index,
    'physical id': 0,
    siblings: count,
    'core id': index,
    'cpu cores': count,
    apicid: index,
    'initial apicid': index,
  };
  return block
    .split('\n')
    .map((line) => {
      const key = line.slice(0, line.indexOf(':')).trimEnd();
      const value = values[key];
      return value === undefined ? line : `${line.slice(0, line.indexOf(':'))}: ${value}`;
    })
    .join('\n');
}

function toKib(bytes: number): number {
  return Math.floor(bytes / 1024);
}
