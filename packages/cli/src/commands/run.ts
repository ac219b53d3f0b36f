import { Command, Option } from 'commander';
import type { SandboxSpec } from '@svc/contract';
import type { EngineClient, Isolation } from '@svc/engine/client';
import { collectEnvVar } from '../arguments/env-var.ts';
import type { EnvVar } from '../arguments/env-var.ts';
import { parseMib } from '../arguments/memory.ts';
import { parseMount } from '../arguments/mount.ts';
import { parseSeconds, wholeNumber } from '../arguments/number.ts';
import { connectEngine } from '../engine/connect.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson, tell } from '../terminal/print.ts';
import { ProgressLine } from '../terminal/progress.ts';
import { UsageError } from '../usage-error.ts';

type Mount = NonNullable<SandboxSpec['mounts']>[number];

interface RunOptions {
  readonly name?: string;
  readonly memory?: number;
  readonly cpus?: number;
  readonly disk?: number;
  readonly env?: readonly EnvVar[];
  readonly workdir?: string;
  readonly user?: string;
  readonly volume?: readonly Mount[];
  readonly isolation?: Isolation;
  readonly security?: 'default' | 'restricted';
  readonly pull?: 'if_missing' | 'always' | 'never';
  readonly network: boolean;
  readonly rm?: boolean;
  readonly detach?: boolean;
  readonly interactive?: boolean;
  readonly tty?: boolean;
  readonly timeout?: number;
}

/** A sandbox without a name whose owner died is removed after this long without a process of ours. */
const ABANDONED_SECONDS = 60;

export function createCommand(): Command {
  return new Command('run')
    .description(
      'Makes a sandbox, runs a command in it and removes it again. With --name the sandbox stays and runs on.\n' +
        'Without a command the default one of the image runs.',
    )
    .argument('<image>', 'image reference, such as python or registry/name:tag')
    .argument('[command...]', 'what to run; put -- before it')
    .option('--name <name>', 'name of the sandbox; it stays when the command has ended')
    .option('-m, --memory <mib>', 'memory limit (512M, 2G; default 512M)', parseMib)
    .option('--cpus <n>', 'number of CPUs (default 1)', wholeNumber(1))
    .option('--disk <mib>', 'size of the writable disk (default 4G)', parseMib)
    .option('-e, --env <key=value>', 'environment variable (repeatable)', collectEnvVar)
    .option('-w, --workdir <dir>', 'working folder')
    .option('-u, --user <user>', 'name, uid, name:group or uid:gid')
    .option('-v, --volume <volume:path[:ro]>', 'mount a volume (repeatable)', parseMount)
    .addOption(
      new Option('--isolation <class>', 'default: the strongest here').choices([
        'container',
        'gvisor',
        'microvm',
      ]),
    )
    .addOption(new Option('--security <profile>', 'security profile').choices(['default', 'restricted']))
    .addOption(
      new Option('--pull <policy>', 'when to pull the image').choices(['if_missing', 'always', 'never']),
    )
    .option('--no-network', 'loopback only')
    .option('--rm', 'remove the sandbox afterwards, although it has a name')
    .option('-d, --detach', 'run the command in the background and print the name of the sandbox')
    .option('-i, --interactive', 'hand over stdin, also from a terminal')
    .option('-t, --tty', 'give the command a terminal')
    .option('--timeout <time>', 'kill the command after this long (90, 10m)', parseSeconds)
    .addHelpText(
      'after',
      examples(
        [`svc run python -- python3 -c 'print(6*7)'`, 'run Python once'],
        ['svc run -it python -- sh', 'a shell'],
        ['svc run --name web -d python -- python3 -m http.server', 'a server that stays'],
        ['echo 1 2 3 | svc run -m 64M base -- wc -w', 'with input and a memory limit'],
      ),
    )
    .action(run);
}

async function run(
  image: string,
  words: readonly string[],
  options: RunOptions,
  command: Command,
): Promise<void> {
  const { dataFolder, isJson, terminalName } = readGlobals(command);
  const engine = await connectEngine(dataFolder);
  if (options.detach === true && words.length === 0)
    throw new UsageError(
      `a command is needed to run in the background\n  try: svc run -d ${image} -- COMMAND`,
    );
  const id = await create(engine, image, words, options);
  if (options.detach === true) return isJson ? printJson(await engine.getSandbox(id)) : print(id);

  const goesAway = options.rm ?? options.name === undefined;
  try {
    const [cmd = '', ...args] = words.length > 0 ? words : await defaultCommand(engine, image);
    const { runProcess } = await import('../sandbox/run-process.ts');
    process.exitCode = await runProcess(engine, id, {
      cmd,
      args,
      env: options.tty === true ? { TERM: terminalName } : {},
      tty: options.tty === true,
      interactive: options.interactive === true || options.tty === true,
      timeoutSeconds: options.timeout,
    });
  } finally {
    if (goesAway) await engine.removeSandbox(id);
  }
  if (!goesAway && process.stderr.isTTY)
    tell(`sandbox ${id} runs on; next: svc exec ${id} -- COMMAND, svc rm ${id}`);
}

async function create(
  engine: EngineClient,
  image: string,
  words: readonly string[],
  options: RunOptions,
): Promise<string> {
  const progress = new ProgressLine();
  try {
    const request = { spec: specOf(image, words, options), start: true };
    const { id } = await engine.createSandbox(
      {
        ...request,
        ...(options.name === undefined ? {} : { id: options.name }),
        ...(options.isolation === undefined ? {} : { isolation: options.isolation }),
      },
      progress.show,
    );
    return id;
  } finally {
    progress.clear();
  }
}

function specOf(image: string, words: readonly string[], options: RunOptions): SandboxSpec {
  const { memory, cpus, disk, workdir, user, security, pull, env = [], volume = [], network } = options;
  const isDetached = options.detach === true;
  return {
    image: { type: 'oci', reference: image },
    resources: {
      ...(cpus === undefined ? {} : { vcpus: cpus }),
      ...(memory === undefined ? {} : { memory_mib: memory }),
      ...(disk === undefined ? {} : { disk_size_mib: disk }),
    },
    runtime: {
      ...(workdir === undefined ? {} : { workdir }),
      ...(user === undefined ? {} : { user }),
      ...(isDetached ? { cmd: [...words] } : {}),
    },
    env: [...env],
    mounts: [...volume],
    network: { enabled: network },
    ...(pull === undefined ? {} : { pull_policy: pull }),
    ...(security === undefined ? {} : { security_profile: security }),
    lifecycle: lifecycleOf(options),
  };
}

function lifecycleOf({ name, rm, detach }: RunOptions): NonNullable<SandboxSpec['lifecycle']> {
  if (!(rm ?? name === undefined)) return { ephemeral: false };
  // In the background the command itself decides how long the sandbox lives.
  return detach === true ? { ephemeral: true } : { ephemeral: true, idle_timeout_secs: ABANDONED_SECONDS };
}

async function defaultCommand(engine: EngineClient, image: string): Promise<readonly string[]> {
  const { config } = await engine.getImage(image);
  const words = [...config.entrypoint, ...config.cmd];
  if (words.length > 0) return words;
  throw new UsageError(`the image ${image} has no default command\n  try: svc run ${image} -- COMMAND`);
}
