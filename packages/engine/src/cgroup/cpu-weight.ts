/** The file that holds the weight of a cgroup. `usual` is the kernel's default. */
export const CPU_WEIGHT = {
  1: { file: 'cpu.shares', usual: 1024 },
  2: { file: 'cpu.weight', usual: 100 },
} as const;
