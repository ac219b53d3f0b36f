import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { Command } from 'commander';
import type { Sandbox } from '@svc/sdk';
import { commandWords } from '../arguments/words.ts';
import { examples } from '../examples.ts';
import { readGlobals, type Globals } from '../globals.ts';
import { shellOf } from '../sandbox/spec-view.ts';
import { UsageError } from '../usage-error.ts';

interface SshOptions {
  readonly gateway?: string;
}

export function createCommand(): Command {
  return new Command('ssh')
    .description(
      'A shell in a sandbox, or a command. With --gateway through the SSH gateway of the server and the ssh of this machine,\n' +
        'which has to hold a key that is registered there; else without SSH, as svc exec -it.',
    )
    .argument('<name>', 'the sandbox')
    .argument('[command...]', 'what to run instead of a shell')
    .option('--gateway <host:port>', 'the SSH gateway of the server')
    .passThroughOptions()
    .addHelpText(
      'after',
      examples(
        ['svc ssh web', 'a shell'],
        ['svc ssh web uname -a', 'a command'],
        ['svc ssh --gateway svc.example.com:5522 web', 'over SSH'],
      ),
    )
    .action(connect);
}

async function connect(
  name: string,
  rest: readonly string[],
  options: SshOptions,
  command: Command,
): Promise<void> {
  const globals = readGlobals(command);
  const words = commandWords(rest);
  const { connectRunning } = await import('../sandbox/connect-running.ts');
  const { connectServer } = await import('../server/connect.ts');
  const sandbox = await connectRunning(name, await connectServer(globals));
  process.exitCode =
    options.gateway === undefined
      ? await openShell(sandbox, words, globals)
      : await runSsh(sandbox.info.slug, options.gateway, words);
}

/** As sshd does it: a command is one line for the shell of the sandbox, and has no terminal. */
async function openShell(
  sandbox: Sandbox,
  words: readonly string[],
  { terminalName }: Globals,
): Promise<number> {
  const { runProcess } = await import('../sandbox/run-process.ts');
  const isTty = words.length === 0 && process.stdin.isTTY;
  return await runProcess(sandbox, {
    cmd: shellOf(sandbox.info),
    args: words.length === 0 ? [] : ['-c', words.join(' ')],
    env: isTty ? { TERM: terminalName } : {},
    cwd: null,
    user: null,
    tty: isTty,
    interactive: true,
    timeoutSeconds: undefined,
  });
}

async function runSsh(slug: string, gateway: string, words: readonly string[]): Promise<number> {
  const [, host, port] = /^([^:@\s-][^:@\s]*):(\d{1,5})$/.exec(gateway) ?? [];
  if (host === undefined || port === undefined)
    throw new UsageError(`a gateway is HOST:PORT, not '${gateway}'\n  try: --gateway svc.example.com:5522`);
  // SAFETY: no shell; neither the slug nor the host can begin with a hyphen and be taken for an option.
  const child = spawn('ssh', ['-p', port, `${slug}@${host}`, ...words], { stdio: 'inherit' });
  const [code, signal] = (await once(child, 'exit').catch(() => {
    throw new UsageError('there is no ssh here\n  try: svc ssh NAME without --gateway');
  })) as [number | null, NodeJS.Signals | null];
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
}
