export { ISOLATIONS } from './isolation.ts';
export type { Isolation } from './isolation.ts';
export { STARTING_MESSAGE } from './sandboxes.ts';
export type {
  SandboxState,
  EndingView,
  LifecycleUpdate,
  ResolvedSpec,
  SecretValues,
  NetworkUpdate,
  CreateSandbox,
  CheckSandbox,
  SpareProcess,
  NewOrchestratorSandbox,
  SandboxReport,
  NodeChange,
  ReportedChange,
  SandboxUsageReport,
} from './sandboxes.ts';
export type {
  ImageConfig,
  RegistryAuth,
  PullPolicy,
  ImageView,
  PullImage,
  HeldImagesView,
  HeldImageView,
  FetchedImage,
  FetchProgress,
} from './images.ts';
export type { Volume, VolumeUsage, VolumeEntry } from './volumes.ts';
export type { SnapshotView, CreateSnapshot } from './snapshots.ts';
export type { LogSource, LogEntry, ReadLogs } from './logs.ts';
export type {
  Action,
  Direction,
  Protocol,
  Group,
  DecidedBy,
  Decider,
  DecisionKind,
  NetworkDecision,
  StoppedRequest,
  DecidingRule,
  Question,
  ConsideredAddress,
  Explanation,
  ExplainNetwork,
  NetworkExplanation,
  NetworkLogEntry,
  NetworkLogLine,
  ReadNetworkLog,
  RefusedConnection,
  RefusedConnections,
  NetworkDenial,
} from './network.ts';
export type {
  SpaceView,
  SpaceUser,
  PoolView,
  NodeReport,
  OfNode,
  OrchestratorDescription,
  IsolationClass,
} from './host.ts';
