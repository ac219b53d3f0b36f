import { Command } from 'commander';
import type { Sandbox } from '@svc/sdk';
import { collectEnvVar, toEnv, type EnvVar } from '../arguments/env-var.ts';
import { parseTimeout } from '../arguments/number.ts';
import { commandWords } from '../arguments/words.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import type { RunRequest } from '../sandbox/run-process.ts';
import { print, printJson } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';

interface ExecOptions {
  readonly env?: readonly EnvVar[];
  readonly workdir?: string;
  readonly user?: string;
  readonly interactive?: boolean;
  readonly tty?: boolean;
  readonly detach?: boolean;
  readonly name?: string;
  readonly timeout?: number;
}

export function createCommand(): Command {
  return new Command('exec')
    .description(
      'Runs a command in a running sandbox.\n' +
        "Exit code: the command's; 127 not found, 126 not startable, 128+n killed by signal n, 124 out of time,\n" +
        '125 when svc itself failed.\n' +
        'Ctrl-] leaves a terminal, which ends what runs in it. With --detach the command runs in the background.',
    )
    .argument('<name>', 'the sandbox')
    .argument('<command...>', 'what to run, with its own options')
    .option(
      '-e, --env <key[=value]>',
      'environment variable; without a value, the one of here (repeatable)',
      collectEnvVar,
    )
    .option('-w, --workdir <dir>', 'working folder')
    .option('-u, --user <user>', 'name, uid, name:group or uid:gid')
    .option('-i, --interactive', 'hand over stdin, also from a terminal')
    .option('-t, --tty', 'give the command a terminal')
    .option('-d, --detach', 'leave it running and print its id')
    .option('--name <name>', 'with --detach: to find the process by')
    .option('--timeout <time>', 'kill the command after this long (90, 10m)', parseTimeout)
    .passThroughOptions()
    .addHelpText(
      'after',
      examples(
        ['svc exec web ls -l /tmp', 'one command'],
        ['svc exec -it web sh', 'a shell'],
        [`svc exec -e A=1 web sh -c 'echo $A'`, 'with a variable'],
        ['svc exec -d --name job web ./work', 'in the background; then: svc process logs web job'],
        ['svc exec -dit --name session web sh', 'a terminal to come back to: svc process attach web session'],
      ),
    )
    .action(exec);
}

async function exec(
  name: string,
  rest: readonly string[],
  options: ExecOptions,
  command: Command,
): Promise<void> {
  const globals = readGlobals(command);
  const [cmd, ...args] = commandWords(rest);
  if (cmd === undefined) throw new UsageError(`there is no command to run\n  try: svc exec ${name} COMMAND`);
  const { connectRunning } = await import('../sandbox/connect-running.ts');
  const { connectServer } = await import('../server/connect.ts');
  const sandbox = await connectRunning(name, await connectServer(globals));
  const isTty = options.tty === true;
  const request = {
    cmd,
    args,
    env: {
      ...(isTty ? { TERM: globals.terminalName } : {}),
      ...toEnv(options.env, globals.readVariable),
    },
    cwd: options.workdir ?? null,
    user: options.user ?? null,
    tty: isTty,
  };
  if (options.detach === true) return await startDetached(sandbox, request, options, globals.isJson);
  const { runProcess } = await import('../sandbox/run-process.ts');
  process.exitCode = await runProcess(sandbox, {
    ...request,
    interactive: options.interactive === true || isTty,
    timeoutSeconds: options.timeout,
  });
}

async function startDetached(
  sandbox: Sandbox,
  { cmd, args, env, cwd, user, tty }: Omit<RunRequest, 'interactive' | 'timeoutSeconds'>,
  { name, timeout, interactive }: ExecOptions,
  isJson: boolean,
): Promise<void> {
  const { windowSize } = await import('../terminal/raw-terminal.ts');
  const started = await sandbox.commands.startDetached(cmd, args, {
    env,
    hasStdin: interactive === true || tty,
    ...(cwd === null ? {} : { cwd }),
    ...(user === null ? {} : { user }),
    ...(name === undefined ? {} : { name }),
    ...(timeout === undefined ? {} : { maxRunSeconds: timeout }),
    ...(tty ? { terminal: windowSize() } : {}),
  });
  if (isJson) printJson(started.info);
  else print(started.id);
}
