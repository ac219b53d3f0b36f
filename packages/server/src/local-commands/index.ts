export { expiryAfter } from '../access/duration.ts';
export { readStatus } from './read-status.ts';
export { canAnybodyRead } from '../host/can-anybody-read.ts';
export { EXIT } from '../host/exit-codes.ts';
export { findServer, SERVER_MAIN, serverLogPath } from '../host/pid-file.ts';
export type { SandboxStatus, ServerStatus } from '../transports/admin/status.ts';
export { lockDataFolder } from '../host/data-folder-lock.ts';
export { LENGTH_BYTES, NO_FILE, SERVER_FILES } from './server-files.ts';
