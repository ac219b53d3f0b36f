import type { CreateSandboxRequest } from '@svc/contract/rest';
import type { OptionNames } from '../client/known-options.ts';

/** How a process is started. */
export interface CommandOptions {
  /** Over the environment of the sandbox. */
  readonly env?: Readonly<Record<string, string>>;
  /** The working directory of the sandbox unless given. */
  readonly cwd?: string;
  /** `name`, `uid`, `name:group` or `uid:gid`; the user of the sandbox unless given. */
  readonly user?: string;
  /** Over the limits of the sandbox. */
  readonly rlimits?: NonNullable<CreateSandboxRequest['rlimits']>;
}

export const COMMAND_OPTIONS: OptionNames<CommandOptions> = {
  env: true,
  cwd: true,
  user: true,
  rlimits: true,
};

/** The options that were given. */
export function givenCommandOptions({ env, cwd, user, rlimits }: CommandOptions) {
  return {
    ...(env === undefined ? {} : { env: { ...env } }),
    ...(cwd === undefined ? {} : { cwd }),
    ...(user === undefined ? {} : { user }),
    ...(rlimits === undefined ? {} : { rlimits: rlimits.map((limit) => ({ ...limit })) }),
  };
}
