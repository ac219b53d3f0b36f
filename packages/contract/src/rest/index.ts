export { checkRestInput } from './check-rest-input.ts';
export { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from './fields.ts';
export { ERROR_DESCRIPTIONS } from '../error-descriptions.ts';
export { API_VERSION, describeOpenApi } from './openapi.ts';
export { pathsOf } from './paths.ts';
export { CodeContext, CodeAnswer, MAX_ANSWERED_OUTPUT_LENGTH, MAX_CODE_CONTEXTS } from './code-fields.ts';
export type { CreateContextRequest, RunCodeRequest } from './code-fields.ts';
export { EVENT_PATTERNS, EVENT_TYPES, matchesEvent } from './event-types.ts';
export type { EventKind, EventPattern, EventType } from './event-types.ts';
export { FEATURES } from './capabilities.ts';
export { MAX_METRICS_RANGE_SECONDS, MIN_METRICS_STEP_SECONDS, SANDBOX_METRICS } from './metrics.ts';
export type { SandboxMetric } from './metrics.ts';
export { LIMIT_NAMES, SELF_HOSTED_PLAN } from './plan-fields.ts';
export { readPlanFile } from './read-plan-file.ts';
export type { BillingPlan, LimitName, Limits, Prices } from './plan-fields.ts';
export type { FetchProgress, PulledImage } from './fetch-events.ts';
export type { ImageView } from './images.ts';
export { ORGANIZATION_SLUG_PATTERN } from './organization-fields.ts';
export {
  DEFAULT_OUTPUT_BUFFER_BYTES,
  MAX_OUTPUT_BUFFER_BYTES,
  MIN_OUTPUT_BUFFER_BYTES,
  Process,
  PROCESS_END_REASONS,
  StartProcessRequest,
} from './process-fields.ts';
export type { ProcessEndReason } from './process-fields.ts';
export { REST_OPERATIONS } from './rest-operations.ts';
export type { RestOperationName, RestOperations } from './rest-operations.ts';
export { BYTES, EVENT_STREAM, ROLES, takesVersion } from './rest-operation.ts';
export type {
  Audience,
  ByteSource,
  HttpMethod,
  RestInput,
  RestOperation,
  RestOutput,
  Role,
  ServerEvent,
} from './rest-operation.ts';
export { Snapshot, SnapshotOperation } from './snapshots.ts';
export {
  CreateSandboxRequest,
  Sandbox,
  SANDBOX_STATUSES,
  SLUG_PATTERN,
  SnapshotLocation,
} from './sandbox-fields.ts';
export type { SandboxStatus } from './sandbox-fields.ts';
export type { SandboxSpecView } from './spec-view.ts';
export { FileInfo, LINK_PATH } from './files.ts';
export { FILE_PATH_HEADER, FILE_RECURSIVE_HEADER, VolumeFileInfo } from './volume-files.ts';
export { checkEntryPath, checkVolumePath, decodeVolumePath, encodeVolumePath } from './volume-path.ts';
export { Volume, VolumeMetrics } from './volumes.ts';
