/** What a sandbox gets that asks for nothing. */
export const DEFAULT_VCPUS = 1;
export const DEFAULT_MEMORY_MIB = 512;
export const DEFAULT_DISK_MIB = 4096;
