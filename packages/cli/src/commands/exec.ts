import { Command } from 'commander';
import { collectEnvVar } from '../arguments/env-var.ts';
import type { EnvVar } from '../arguments/env-var.ts';
import { parseSeconds } from '../arguments/number.ts';
import { connectEngine } from '../engine/connect.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';

interface ExecOptions {
  readonly env?: readonly EnvVar[];
  readonly workdir?: string;
  readonly user?: string;
  readonly interactive?: boolean;
  readonly tty?: boolean;
  readonly timeout?: number;
}

export function createCommand(): Command {
  return new Command('exec')
    .description("Runs a command in a running sandbox. Its exit code is the command's.")
    .argument('<name>', 'the sandbox')
    .argument('<command...>', 'what to run; put -- before it')
    .option('-e, --env <key=value>', 'environment variable (repeatable)', collectEnvVar)
    .option('-w, --workdir <dir>', 'working folder')
    .option('-u, --user <user>', 'name, uid, name:group or uid:gid')
    .option('-i, --interactive', 'hand over stdin, also from a terminal')
    .option('-t, --tty', 'give the command a terminal')
    .option('--timeout <time>', 'kill the command after this long (90, 10m)', parseSeconds)
    .addHelpText(
      'after',
      examples(
        ['svc exec web -- ls /tmp', 'one command'],
        ['svc exec -it web -- sh', 'a shell'],
        [`svc exec -e A=1 web -- sh -c 'echo $A'`, 'with a variable'],
      ),
    )
    .action(exec);
}

async function exec(
  name: string,
  words: readonly string[],
  options: ExecOptions,
  command: Command,
): Promise<void> {
  const { dataFolder, terminalName } = readGlobals(command);
  const engine = await connectEngine(dataFolder);
  const [cmd = '', ...args] = words;
  const isTty = options.tty === true;
  const { runProcess } = await import('../sandbox/run-process.ts');
  process.exitCode = await runProcess(engine, name, {
    cmd,
    args,
    env: {
      ...(isTty ? { TERM: terminalName } : {}),
      ...Object.fromEntries((options.env ?? []).map(({ key, value }) => [key, value])),
    },
    cwd: options.workdir ?? null,
    user: options.user ?? null,
    tty: isTty,
    interactive: options.interactive === true || isTty,
    timeoutSeconds: options.timeout,
  });
}
