import { Option, type Command } from 'commander';
import type { CreateOptions } from '@svc/sdk';
import { collectEnvVar, toEnv, type EnvVar } from '../arguments/env-var.ts';
import { collectLabel, type Labels } from '../arguments/label.ts';
import { parseMib } from '../arguments/memory.ts';
import { parseMount } from '../arguments/mount.ts';
import { parseCpus, parseSeconds } from '../arguments/number.ts';
import { collectPort, type PublishedPort } from '../arguments/port.ts';
import { addNetworkOptions, toNetworkChange, type NetworkOptions } from './network-options.ts';

/** The options of the command line for a new sandbox. */
export interface SandboxOptions extends NetworkOptions {
  readonly name?: string;
  readonly memory?: number;
  readonly cpus?: number;
  readonly disk?: number;
  readonly env?: readonly EnvVar[];
  readonly workdir?: string;
  readonly user?: string;
  readonly shell?: string;
  readonly volume?: ReturnType<typeof parseMount>;
  readonly publish?: readonly PublishedPort[];
  readonly label?: Labels;
  readonly isolation?: 'auto' | 'container' | 'gvisor' | 'microvm';
  readonly security?: 'default' | 'restricted';
  readonly pull?: 'if_missing' | 'always' | 'never';
  readonly idleTimeout?: number;
  readonly maxDuration?: number;
  readonly network: boolean;
  readonly snapshot?: string;
}

/** The options that `run` and `create` share. */
export function addSandboxOptions(command: Command): Command {
  return addNetworkOptions(command)
    .option('-m, --memory <mib>', 'memory limit (512M, 2G; default 512M)', parseMib)
    .option('--cpus <n>', 'number of CPUs (default 1)', parseCpus)
    .option('--disk <mib>', 'size of the writable disk (default 4G)', parseMib)
    .option(
      '-e, --env <key[=value]>',
      'environment variable; without a value, the one of here (repeatable)',
      collectEnvVar,
    )
    .option('-w, --workdir <dir>', 'working folder')
    .option('-u, --user <user>', 'name, uid, name:group or uid:gid')
    .option('--shell <path>', 'shell of the sandbox (default /bin/sh)')
    .option(
      '-v, --volume <source:path[:ro]>',
      "mount a volume, or a folder of the server's machine that its operator allows (repeatable)",
      parseMount,
    )
    .option(
      '-p, --publish <[host:]guest[/udp]>',
      "publish a port on the server's host; without a host port, any that is free (repeatable)",
      collectPort,
    )
    .option('-l, --label <key=value>', 'to find it by (repeatable)', collectLabel)
    .addOption(
      new Option('--isolation <class>', 'default: what the server chooses').choices([
        'auto',
        'container',
        'gvisor',
        'microvm',
      ]),
    )
    .addOption(new Option('--security <profile>', 'security profile').choices(['default', 'restricted']))
    .addOption(
      new Option('--pull <policy>', 'when to pull the image').choices(['if_missing', 'always', 'never']),
    )
    .option('--idle-timeout <time>', 'stop it after this long with nothing going on (10m)', parseSeconds)
    .option('--max-duration <time>', 'stop it after this long (8h)', parseSeconds)
    .option('--snapshot <name>', 'begin with the disk of this snapshot; - is then the image')
    .option('--no-network', 'loopback only');
}

/** The same as options of the SDK. `words`: the main command. */
export function toCreateOptions(
  image: string,
  words: readonly string[],
  options: SandboxOptions,
  readVariable: (name: string) => string | undefined,
): Omit<CreateOptions, 'name' | 'isEphemeral'> & { readonly image: string } {
  const { memory, cpus, disk, workdir, user, shell, isolation, idleTimeout, maxDuration } = options;
  const { env, volume, label, security, pull } = options;
  return {
    image,
    ...defined({ memoryMib: memory, vcpus: cpus, diskMib: disk, workdir, user, shell, isolation }),
    ...defined({ idleTimeoutSeconds: idleTimeout, maxDurationSeconds: maxDuration, labels: label }),
    ...defined({ mounts: volume }),
    env: toEnv(env, readVariable),
    network: {
      enabled: options.network,
      ...toNetworkChange(options),
    },
    spec: {
      ...defined({ security_profile: security, pull_policy: pull }),
      ...(words.length === 0 ? {} : { runtime: { ...defined({ workdir, user, shell }), cmd: [...words] } }),
    },
  };
}

type Defined<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };

function defined<T extends object>(fields: T): Defined<T> {
  // Only options with a value are left.
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>;
}
