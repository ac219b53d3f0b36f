export { SvcSandboxClient } from './client.ts';
export type { SvcSandboxOptions } from './options.ts';
export { SvcSandboxSession } from './session.ts';
export type { SvcSessionState } from './session-state.ts';
