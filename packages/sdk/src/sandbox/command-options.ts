import type { ExecRequest } from '@svc/contract/channel';

/** How a process is started. */
export interface CommandOptions {
  /** Over the environment of the sandbox. */
  readonly env?: Readonly<Record<string, string>>;
  /** The working directory of the sandbox unless given. */
  readonly cwd?: string;
  /** `name`, `uid`, `name:group` or `uid:gid`; the user of the sandbox unless given. */
  readonly user?: string;
  readonly rlimits?: ExecRequest['rlimits'];
}
