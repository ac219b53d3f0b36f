export { EngineClient } from './engine-client.ts';
export { EVENT_TYPES } from './engine-api.ts';
export type {
  BuildDemoImages,
  Capabilities,
  CheckSandbox,
  CreateSandbox,
  CreateSnapshot,
  EndReason,
  EngineEvent,
  HeldImagesView,
  HeldImageView,
  ImageView,
  ImportImage,
  LogEntry,
  LogSource,
  EndingView,
  LifecycleUpdate,
  NetworkUpdate,
  PoolView,
  PullImage,
  ReadEvents,
  ReadLogs,
  ResolvedSpec,
  SandboxMetrics,
  SandboxState,
  SandboxView,
  SecretValues,
  SnapshotView,
  SpaceUser,
  SpaceView,
  SpareProcess,
  StartSandbox,
} from './engine-api.ts';
export type {
  ExplainNetwork,
  NetworkExplanation,
  NetworkLogEntry,
  NetworkLogLine,
  ReadNetworkLog,
  RefusedConnection,
  RefusedConnections,
} from './network-api.ts';
export type { ImageProgress, RegistryAuth } from '../images/images.ts';
export { ISOLATIONS, type Isolation } from '../runtime/runtime.ts';
export type { Volume, VolumeEntry, VolumeUsage } from '../volumes/volumes.ts';
export { socketTransport as duplexTransport } from '../guest/socket-transport.ts';
export { engineCommand } from './engine-command.ts';
export { findEngine, findWrapper, SUPERVISED, type FoundEngine } from './find-engine.ts';
export { describeLockHolder } from '../host/lock-holder.ts';
export { readProcessState } from '../host/process-state.ts';
export { Watchdog } from '../host/watchdog.ts';
