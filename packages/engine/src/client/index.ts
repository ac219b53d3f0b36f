export { EngineClient } from './engine-client.ts';
export type { EngineAddress } from './engine-address.ts';
export { TlsCredentials, type TlsFiles } from './tls-credentials.ts';
export { EVENT_TYPES } from './engine-api.ts';
export type {
  BuildDemoImages,
  Capabilities,
  EndReason,
  EngineEvent,
  ImportImage,
  ReadEvents,
  SandboxMetrics,
  SandboxView,
  StartSandbox,
} from './engine-api.ts';
export type { ImageProgress } from '../images/images.ts';
export { engineCommand } from './engine-command.ts';
export { findEngine, findWrapper, SUPERVISED, type FoundEngine } from './find-engine.ts';
export { describeLockHolder } from '../host/lock-holder.ts';
export { readProcessState } from '../host/process-state.ts';
export { Watchdog } from '../host/watchdog.ts';
