import type { ExecRequest } from '@svc/contract/channel';
import type { OptionNames } from '../client/known-options.ts';

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

export const COMMAND_OPTIONS: OptionNames<CommandOptions> = {
  env: true,
  cwd: true,
  user: true,
  rlimits: true,
};
