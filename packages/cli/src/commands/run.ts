import { Command } from 'commander';
import type { Client, Sandbox } from '@svc/sdk';
import { parseTimeout } from '../arguments/number.ts';
import { commandWords } from '../arguments/words.ts';
import { examples } from '../examples.ts';
import { readGlobals, type Globals } from '../globals.ts';
import { addSandboxOptions, toCreateOptions, type SandboxOptions } from '../sandbox/create-options.ts';
import { ownWordsOf, shellOf } from '../sandbox/spec-view.ts';
import { print, printJson, report } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';

interface RunOptions extends SandboxOptions {
  readonly rm?: boolean;
  readonly detach?: boolean;
  readonly interactive?: boolean;
  readonly tty?: boolean;
  readonly timeout?: number;
}

const BASH = '/bin/bash';

/** An unnamed sandbox whose `svc run` died is removed after this long without activity. */
const ABANDONED_SECONDS = 60;

export function createCommand(): Command {
  const command = new Command('run')
    .description(
      'Makes a sandbox, runs a command in it and removes it again. With --name the sandbox stays and runs on.\n' +
        "Without a command the image's own one is run, and on a terminal else bash or sh; with --detach the sandbox just runs.\n" +
        "Exit code: the command's; 127 not found, 126 not startable, 128+n killed by signal n, 124 out of time,\n" +
        '125 when svc itself failed.\n' +
        'Ctrl-] leaves a terminal, which ends what runs in it.',
    )
    .argument('<image>', 'image reference, such as python or registry/name:tag; - with --snapshot')
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
        [
          'svc run -d --name web -p 8000 python python3 -m http.server',
          'at any port of the host, which is told',
        ],
        ['svc run --snapshot clean - ls /', 'with the disk of a snapshot'],
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
  const { connectServer } = await import('../server/connect.ts');
  const client = await connectServer(globals);
  const sandbox = await create(client, image, isDetached ? words : [], {
    ...options,
    readVariable: globals.readVariable,
  });
  if (isDetached) return globals.isJson ? printJson(sandbox.info) : print(sandbox.name);

  const goesAway = isEphemeral(options);
  const isTty = options.tty === true || (words.length === 0 && process.stdin.isTTY);
  try {
    const { runProcess } = await import('../sandbox/run-process.ts');
    const [cmd = shellOf(sandbox.info), ...args] =
      words.length > 0 ? words : await ownWords(sandbox, image, isTty, options.shell);
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
    report(
      `sandbox ${sandbox.name} runs on; next: svc exec ${sandbox.name} COMMAND, svc rm -f ${sandbox.name}`,
    );
}

/**
 * The command to run: that of the image; else, on a terminal, a shell. A shell that was named is used.
 * @throws UsageError when there is nothing to run
 */
async function ownWords(
  sandbox: Sandbox,
  image: string,
  isTty: boolean,
  shell: string | undefined,
): Promise<readonly string[]> {
  if (shell !== undefined) return [shell];
  const own = ownWordsOf(sandbox.info);
  if (own.length > 0) return own;
  if (!isTty)
    throw new UsageError(
      `there is no command to run: ${image} has none of its own, and there is no terminal for a shell\n  try: svc run ${image} COMMAND`,
    );
  return (await sandbox.files.exists(BASH)) ? [BASH] : [];
}

async function create(
  client: Client,
  image: string,
  words: readonly string[],
  options: RunOptions & Pick<Globals, 'readVariable'>,
): Promise<Sandbox> {
  const { withChosenPorts } = await import('../sandbox/choose-ports.ts');
  const { createSandbox } = await import('../sandbox/create-sandbox.ts');
  const { diskSource } = await import('../sandbox/disk-source.ts');
  const goesAway = isEphemeral(options);
  // In the background the sandbox lives as long as its command.
  const isWatched = goesAway && options.detach !== true;
  const { image: reference, ...made } = toCreateOptions(image, words, options, options.readVariable);
  const asked = {
    ...(isWatched ? { idleTimeoutSeconds: ABANDONED_SECONDS } : {}),
    ...made,
    ...(await diskSource(client, reference, options.snapshot)),
    name: options.name ?? `run-${crypto.randomUUID().slice(0, 8)}`,
    isEphemeral: goesAway,
  };
  return await withChosenPorts(asked, options.publish, (chosen) => createSandbox(client, chosen));
}

function isEphemeral({ name, rm, detach }: RunOptions): boolean {
  return rm ?? (name === undefined && detach !== true);
}

/** A failure is ignored, because the server also removes the sandbox after its idle timeout. */
async function removeAgain(sandbox: Sandbox): Promise<void> {
  const { SvcError } = await import('@svc/sdk');
  await sandbox.remove().catch((error: unknown) => {
    if (SvcError.is(error, 'sandbox_not_found')) return;
    report(`warning: sandbox ${sandbox.name} could not be removed\n  try: svc rm -f ${sandbox.name}`);
  });
}
