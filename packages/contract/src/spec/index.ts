export { DEFAULT_DISK_MIB, DEFAULT_MEMORY_MIB, DEFAULT_VCPUS } from './defaults.ts';
export { normalizeGuestPath } from './guest-path.ts';
export { RLIMIT_RESOURCES } from './rlimit-resources.ts';
export { isUnlimited, toU64 } from './unlimited.ts';
