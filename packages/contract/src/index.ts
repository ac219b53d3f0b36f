export type { ByteStream } from './channel/byte-queue.ts';
export { ChannelClient } from './channel/channel-client.ts';
export type { CallOptions } from './channel/channel-client.ts';
export { ChannelError, ExecFailed, FileFailed } from './channel/channel-error.ts';
export type { ChannelErrorKind, ExecFailureKind, RunOutput } from './channel/channel-error.ts';
export type { ChannelFiles, FileMetadata } from './channel/channel-files.ts';
export type { ChannelProcess, ExecRequest, ProcessExit } from './channel/channel-process.ts';
export type { AgentInfo } from './channel/connection.ts';
export type { DetachedEvent } from './channel/detached-output.ts';
export type {
  DetachedProcesses,
  DetachedRequest,
  NamedWrite,
  ReadDetached,
} from './channel/detached-processes.ts';
export type { DetachedEndReason, DetachedState } from './channel/detached-state.ts';
export type { FileAttributes, FileEntry, OpenFlags } from './channel/file-entry.ts';
export type { RunOptions, RunResult } from './channel/run-process.ts';
export { shellCodeOf } from './channel/shell-code.ts';
export type { TcpStream } from './channel/tcp-stream.ts';
export type { UdpSession } from './channel/udp-session.ts';
export type { ByteTransport } from './channel/transport.ts';
export { ERROR_STATUS, isErrorCode, PlatformError } from './errors.ts';
export type { ErrorCode, ErrorDetails, ErrorEnvelope } from './errors.ts';
export { FRAME_HEAD_BYTES, GENERATION } from './frames/envelope.ts';
export { FrameError } from './frames/frame-error.ts';
export { FrameSplitter } from './frames/frame-splitter.ts';
export { decodeMessage, encodeMessage, MAX_FRAME_BYTES, readFrameHead } from './frames/frame.ts';
export type { Message, Payload } from './frames/frame.ts';
export { flagsOf, isTerminal } from './frames/message-types.ts';
export { loadCompiler } from './schema/compile.ts';
export { Mount, MountOptions, Patch } from './spec/mounts.ts';
export { Network, NetworkPolicy, type NetworkChange } from './spec/network.ts';
export type { PublishedPort } from './spec/published-port.ts';
export { RLIMIT_RESOURCES } from './spec/rlimit-resources.ts';
export { Rlimit, SandboxSpec } from './spec/sandbox-spec.ts';
export { MAX_LABELS, RESERVED_LABEL_PREFIXES } from './spec/strict.ts';
export type { HostPattern, NamedHost, SecretEntry, SecretSource } from './spec/secrets.ts';
export { isUnlimited, toU64 } from './spec/unlimited.ts';
export { checkHosts } from './spec/check-network.ts';
export { checkSpec } from './spec/check-spec.ts';
export {
  DEFAULT_DISK_MIB,
  DEFAULT_DNS,
  DEFAULT_MAX_CONNECTIONS,
  DEFAULT_MEMORY_MIB,
  DEFAULT_METRICS_INTERVAL_MS,
  DEFAULT_POLICY,
  DEFAULT_SHELL,
  DEFAULT_VCPUS,
  DENY_ALL,
} from './spec/defaults.ts';
export { normalizeGuestPath } from './spec/guest-path.ts';
export { nameProblem } from './operations/check-name.ts';
export { isResultTable } from './operations/check-table.ts';
export { checkInput } from './operations/check-input.ts';
export { KERNEL_NAME_PATTERN, KERNEL_PREFIX, LANGUAGES } from './operations/code.ts';
export {
  MAX_FORM_BYTES,
  MAX_RESULTS,
  MAX_RESULTS_BYTES,
  MIME_TYPE_PATTERN,
  TABLE_TYPE,
  type CodeRunResult,
  type LeftOut,
} from './operations/code-results.ts';
export type { Access, Operation } from './operations/operation.ts';
export { isOperationName, OPERATIONS } from './operations/operations.ts';
export type { OperationInput, OperationName, OperationOutput } from './operations/operations.ts';
export { MAX_TIMEOUT_SECONDS, timeoutMsOf } from './operations/run-limits.ts';
export { ALL_NAMESPACES, DEFAULT_NAMESPACE } from './operations/sandbox-reference.ts';
export type { SandboxConfig } from './operations/sandboxes.ts';
