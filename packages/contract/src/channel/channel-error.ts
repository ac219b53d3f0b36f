import type { ErrorCode } from '../errors.ts';

/**
 * - `closed`: the connection ended; the outcome of calls under way is unknown.
 * - `timeout`: the peer did not answer in time.
 * - `protocol`: the peer broke the protocol.
 * - `refused`: the peer refused the call.
 * - `unsupported`: the peer speaks a generation that lacks this.
 */
export type ChannelErrorKind = 'closed' | 'timeout' | 'protocol' | 'refused' | 'unsupported';

/** The output of a process until its connection ended. */
export interface RunOutput {
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
  /** The streams that were cut; only their beginning is here. */
  readonly truncated: readonly ('stdout' | 'stderr')[];
}

/** A call over the channel that failed for a reason of the channel. */
export class ChannelError extends Error {
  readonly kind: ChannelErrorKind;
  /** The peer's own code for its refusal; null when it did not refuse. */
  readonly refusal: string | null;
  /** Output of the process that was being run; null for other calls. */
  readonly output: RunOutput | null;

  constructor(
    kind: ChannelErrorKind,
    message: string,
    options: ErrorOptions & { readonly refusal?: string; readonly output?: RunOutput } = {},
  ) {
    super(message, options);
    this.name = 'ChannelError';
    this.kind = kind;
    this.refusal = options.refusal ?? null;
    this.output = options.output ?? null;
  }
}

const EXEC_FAILURE_KINDS = [
  'not_found',
  'permission_denied',
  'not_executable',
  'bad_cwd',
  'bad_args',
  'resource_limit',
  'user_setup_failed',
  'out_of_memory',
  'pty_setup_failed',
  'other',
] as const;

export type ExecFailureKind = (typeof EXEC_FAILURE_KINDS)[number];

/** A process that could not be started. */
export class ExecFailed extends Error {
  readonly kind: ExecFailureKind;
  readonly errnoName: string | null;
  readonly stage: string | null;

  constructor(kind: string, message: string, errnoName: string | null, stage: string | null) {
    super(message);
    this.name = 'ExecFailed';
    this.kind = EXEC_FAILURE_KINDS.find((known) => known === kind) ?? 'other';
    this.errnoName = errnoName;
    this.stage = stage;
  }
}

const CODE_OF_ERRNO: Readonly<Record<string, ErrorCode>> = {
  ENOENT: 'not_found',
  ENOTDIR: 'not_found',
  EEXIST: 'name_already_exists',
  EACCES: 'forbidden',
  EPERM: 'forbidden',
  EROFS: 'forbidden',
  ENOSPC: 'disk_full',
  EDQUOT: 'disk_full',
  EFBIG: 'payload_too_large',
};

/** A file operation that the sandbox answered with an error. */
export class FileFailed extends Error {
  /** `ENOENT` and the like, when the answer says it. */
  readonly errnoName: string | null;

  constructor(message: string, errnoName: string | null) {
    super(message);
    this.name = 'FileFailed';
    this.errnoName = errnoName ?? errnoNameIn(message);
  }

  /** The error code for callers of every API. It is not named `code`, where Node's own errors have the errno. */
  get platformCode(): ErrorCode {
    return CODE_OF_ERRNO[this.errnoName ?? ''] ?? 'invalid_request';
  }
}

/** The protocol has free text only, so agents other than ours are understood by the words of their C library. */
function errnoNameIn(message: string): string | null {
  const text = message.toLowerCase();
  return ERRNO_WORDS.find(([words]) => text.includes(words))?.[1] ?? null;
}

const ERRNO_WORDS = [
  ['no such file or directory', 'ENOENT'],
  ['not a directory', 'ENOTDIR'],
  ['is a directory', 'EISDIR'],
  ['file exists', 'EEXIST'],
  ['directory not empty', 'ENOTEMPTY'],
  ['permission denied', 'EACCES'],
  ['operation not permitted', 'EPERM'],
  ['no space left on device', 'ENOSPC'],
  ['disk quota exceeded', 'EDQUOT'],
  ['too many levels of symbolic links', 'ELOOP'],
  ['too many symbolic links', 'ELOOP'],
  ['file name too long', 'ENAMETOOLONG'],
  ['cross-device link', 'EXDEV'],
  ['read-only file system', 'EROFS'],
  ['too many open files', 'EMFILE'],
  ['bad file descriptor', 'EBADF'],
  ['file too large', 'EFBIG'],
  ['invalid argument', 'EINVAL'],
] as const;
