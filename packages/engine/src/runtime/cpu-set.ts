/**
 * The CPUs that a sandbox is pinned to, in the kernel's list format, so that `nproc` inside shows its share and sandboxes are spread over
 * the host. Null when it may use all CPUs.
 */
export function pinnedCpus(allowed: readonly number[], vcpus: number, first: number): string | null {
  if (vcpus >= allowed.length) return null;
  const picked = Array.from({ length: vcpus }, (_, index) => allowed[(first + index) % allowed.length] ?? 0);
  return picked.sort((a, b) => a - b).join(',');
}

/** Parses the kernel's list format, "0-3,8". */
export function parseCpuList(text: string): readonly number[] {
  return text
    .trim()
    .split(',')
    .filter((range) => range !== '')
    .flatMap((range) => {
      const [from = 0, to = from] = range.split('-').map(Number);
      return Array.from({ length: to - from + 1 }, (_, index) => from + index);
    });
}

/** The CPUs that this process may use, from /proc/self/status. */
export function allowedCpus(status: string): readonly number[] {
  return parseCpuList(/^Cpus_allowed_list:\s*(.*)$/m.exec(status)?.[1] ?? '');
}
