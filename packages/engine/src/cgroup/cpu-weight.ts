/** The file that holds the weight of a cgroup. `usual` is the kernel's default; `least` its minimum. */
export const CPU_WEIGHT = {
  1: { file: 'cpu.shares', usual: 1024, least: 2 },
  2: { file: 'cpu.weight', usual: 100, least: 1 },
} as const;
