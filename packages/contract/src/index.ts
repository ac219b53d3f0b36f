export { ERROR_STATUS, isErrorCode, PlatformError } from './errors.ts';
export type { ErrorCode, ErrorDetails, ErrorEnvelope } from './errors.ts';
export {
  decodeMessage,
  encodeMessage,
  FRAME_HEAD_BYTES,
  FrameError,
  FrameSplitter,
  GENERATION,
  MAX_FRAME_BYTES,
} from './frames/frame.ts';
export type { Message, Payload } from './frames/frame.ts';
export { flagsOf, isTerminal } from './frames/message-types.ts';
export { Mount, MountOptions, Patch } from './spec/mounts.ts';
export { Network, NetworkPolicy } from './spec/network.ts';
export { Rlimit, RLIMIT_RESOURCES, SandboxSpec } from './spec/sandbox-spec.ts';
export { RESERVED_LABEL_PREFIXES } from './spec/strict.ts';
