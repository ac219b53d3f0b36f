/** How a cgroup is told its weight. `usual` is what it has unless told otherwise; the kernel takes none below `least`. */
export const CPU_WEIGHT = {
  1: { file: 'cpu.shares', usual: 1024, least: 2 },
  2: { file: 'cpu.weight', usual: 100, least: 1 },
} as const;
