import { Command } from 'commander';
import type { Client, Sandbox } from '@svc/sdk';
import { parseTimeout } from '../arguments/number.ts';
import { commandWords } from '../arguments/words.ts';
import { examples } from '../examples.ts';
import { readGlobals, type Globals } from '../globals.ts';
import { addSandboxOptions, toCreateOptions, type SandboxOptions } from '../sandbox/create-options.ts';
import { ownWordsOf, shellOf } from '../sandbox/spec-view.ts';
import { print, printJson, tell } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';

interface RunOptions extends SandboxOptions {
  readonly rm?: boolean;
  readonly detach?: boolean;
  readonly interactive?: boolean;
  readonly tty?: boolean;
  readonly timeout?: number;
}

const BASH = '/bin/bash';

/** A sandbox without a name whose owner died is removed after this long without a process of ours. */
const ABANDONED_SECONDS = 60;

export function createCommand(): Command {
  const command = new Command('run')
    .description(
      'Makes a sandbox, runs a command in it and removes it again. With --name the sandbox stays and runs on.\n' +
        "Without a command a terminal gets the image's own one, else bash or sh; with --detach the sandbox just runs.\n" +
        "Exit code: the command's; 127 not found, 126 not startable, 128+n killed by signal n, 124 out of time,\n" +
        '125 when svc itself failed.\n' +
        'Ctrl-] leaves a terminal, which ends what runs in it.',
    )
    .argument('<image>', 'image reference, such as python or registry/name:tag')
    .argument('[command...]', 'what to run, with its own options')
    .option('--name <name>', 'name of the sandbox; it stays when the command has ended')
    .option('--rm', 'remove the sandbox afterwards, although it has a name')
    .option('-d, --detach', 'run the command in the background and print the name of the sandbox')
    .option('-i, --interactive', 'hand over stdin, also from a terminal')
    .option('-t, --tty', 'give the command a terminal')
    .option('--timeout <time>', 'kill the command after this long (90, 10m)', parseTimeout);
  return addSandboxOptions(command)
    .passThroughOptions()
    .addHelpText(
      'after',
      examples(
        [`svc run python python3 -c 'print(6*7)'`, 'run Python once'],
        ['svc run -it python', "Python's prompt: the command of the image"],
        ['svc run -it python bash', 'a shell'],
        ['svc run -d --name web -p 8080:8000 python python3 -m http.server', 'a server that stays'],
        ['echo 1 2 3 | svc run -m 64M base wc -w', 'with input and a memory limit'],
      ),
    )
    .action(run);
}

async function run(
  image: string,
  rest: readonly string[],
  options: RunOptions,
  command: Command,
): Promise<void> {
  const globals = readGlobals(command);
  const words = commandWords(rest);
  const isDetached = options.detach === true;
  const wantsShell = words.length === 0 && !isDetached;
  if (wantsShell && !process.stdin.isTTY)
    throw new UsageError(
      `there is no command to run, and no terminal to ask for one\n  try: svc run ${image} COMMAND`,
    );
  const { connectServer } = await import('../server/connect.ts');
  const client = await connectServer(globals);
  const sandbox = await create(client, image, isDetached ? words : [], {
    ...options,
    readVariable: globals.readVariable,
  });
  if (isDetached) return globals.isJson ? printJson(sandbox.info) : print(sandbox.name);

  const goesAway = isEphemeral(options);
  const isTty = options.tty === true || wantsShell;
  try {
    const { runProcess } = await import('../sandbox/run-process.ts');
    const [cmd = shellOf(sandbox.info), ...args] = wantsShell
      ? await wordsForTerminal(sandbox, options.shell)
      : words;
    process.exitCode = await runProcess(sandbox, {
      cmd,
      args,
      env: isTty ? { TERM: globals.terminalName } : {},
      cwd: null,
      user: null,
      tty: isTty,
      interactive: options.interactive === true || isTty,
      timeoutSeconds: options.timeout,
    });
  } finally {
    if (goesAway) await removeAgain(sandbox);
  }
  if (!goesAway && process.stderr.isTTY)
    tell(
      `sandbox ${sandbox.name} runs on; next: svc exec ${sandbox.name} COMMAND, svc rm -f ${sandbox.name}`,
    );
}

/** What the image is for, else the shell that people expect. Whoever names a shell wants that one. */
async function wordsForTerminal(sandbox: Sandbox, shell: string | undefined): Promise<readonly string[]> {
  if (shell !== undefined) return [shell];
  const own = ownWordsOf(sandbox.info);
  if (own.length > 0) return own;
  return (await sandbox.files.exists(BASH)) ? [BASH] : [];
}

async function create(
  client: Client,
  image: string,
  words: readonly string[],
  options: RunOptions & Pick<Globals, 'readVariable'>,
): Promise<Sandbox> {
  const { createSandbox } = await import('../sandbox/create-sandbox.ts');
  const goesAway = isEphemeral(options);
  // In the background the command itself decides how long the sandbox lives.
  const isWatched = goesAway && options.detach !== true;
  return await createSandbox(client, {
    ...(isWatched ? { idleTimeoutSeconds: ABANDONED_SECONDS } : {}),
    ...toCreateOptions(image, words, options, options.readVariable),
    name: options.name ?? `run-${crypto.randomUUID().slice(0, 8)}`,
    isEphemeral: goesAway,
  });
}

function isEphemeral({ name, rm, detach }: RunOptions): boolean {
  return rm ?? (name === undefined && detach !== true);
}

/** The server removes it as well, when it has seen nobody for a while. */
async function removeAgain(sandbox: Sandbox): Promise<void> {
  const { SvcError } = await import('@svc/sdk');
  await sandbox.remove().catch((error: unknown) => {
    if (SvcError.is(error, 'sandbox_not_found')) return;
    tell(`warning: sandbox ${sandbox.name} could not be removed\n  try: svc rm -f ${sandbox.name}`);
  });
}
