export {
  DEFAULT_DISK_MIB,
  DEFAULT_DNS,
  DEFAULT_HOST_PERMISSIONS,
  DEFAULT_MAX_CONNECTIONS,
  DEFAULT_MEMORY_MIB,
  DEFAULT_POLICY,
  DEFAULT_STAT_VIRTUALIZATION,
  DEFAULT_TLS,
  DEFAULT_VCPUS,
  DENY_ALL,
} from './defaults.ts';
export { DEFAULT_LOG_LEVEL, LOG_LEVELS } from './log-levels.ts';
export type { LogLevel } from './log-levels.ts';
export { DEFAULT_METRICS_INTERVAL_MS } from './defaults.ts';
export { normalizeGuestPath } from './guest-path.ts';
export { readSecrets } from './secret-request.ts';
export { placesOf, violationRule } from './secret-rules.ts';
export type { ViolationRule } from './secret-rules.ts';
export { RLIMIT_RESOURCES } from './rlimit-resources.ts';
export { isUnlimited, toU64 } from './unlimited.ts';
