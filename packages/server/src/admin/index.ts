export { expiryAfter } from '../keys/duration.ts';
export { readStatus } from './read-status.ts';
export { EXIT } from '../process/exit-codes.ts';
export { findServer, SERVER_MAIN, serverLogPath } from '../process/pid-file.ts';
export type { SandboxStatus, ServerStatus } from '../transports/admin/status.ts';
