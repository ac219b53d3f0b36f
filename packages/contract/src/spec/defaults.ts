/** What a sandbox gets that asks for nothing. */
export const DEFAULT_VCPUS = 1;
export const DEFAULT_MEMORY_MIB = 512;
export const DEFAULT_DISK_MIB = 4096;
/** Between two measurements of what a sandbox uses. */
export const DEFAULT_METRICS_INTERVAL_MS = 1000;

/** What a guest says of owners and modes in a folder of the host stays in an overlay, and off the host. */
export const DEFAULT_STAT_VIRTUALIZATION = 'strict';
export const DEFAULT_HOST_PERMISSIONS = 'private';
