import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { Command } from 'commander';
import type { Sandbox } from '@svc/sdk';
import { commandWords } from '../arguments/words.ts';
import { examples } from '../examples.ts';
import { readGlobals, type Globals } from '../globals.ts';
import { shellOf } from '../sandbox/spec-view.ts';
import type { ChosenGateway } from '../ssh/choose-gateway.ts';
import { report } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';

interface SshOptions {
  readonly gateway?: boolean;
  readonly gatewayAddress?: string;
}

/** What ssh says when the trouble is its own. */
const SSH_FAILED = 255;

export function createCommand(): Command {
  return new Command('ssh')
    .description(
      'A shell in a sandbox, or a command. Goes through the SSH gateway and the ssh of this machine when the server has one and\n' +
        'one of your keys is registered (svc ssh-key add); else without SSH, as svc exec -it.',
    )
    .argument('<name>', 'the sandbox')
    .argument('[command...]', 'what to run instead of a shell')
    .option('--gateway', 'through the SSH gateway or not at all')
    .option('--no-gateway', 'without SSH')
    .option('--gateway-address <host:port>', 'where the gateway is, when that is not on the host of the API')
    .passThroughOptions()
    .addHelpText(
      'after',
      examples(
        ['svc ssh web', 'a shell'],
        ['svc ssh web uname -a', 'a command'],
        ['svc ssh-key add && svc ssh --gateway web', 'over SSH, with your key'],
        ['svc ssh --gateway-address ssh.example.com:5522 web', 'a gateway behind another name'],
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
  const { chooseGateway } = await import('../ssh/choose-gateway.ts');
  const client = await connectServer(globals);
  const wanted = { isWanted: options.gateway, address: options.gatewayAddress };
  const [sandbox, gateway] = await Promise.all([
    connectRunning(name, client),
    chooseGateway(client, wanted, globals),
  ]);
  process.exitCode =
    gateway === null ? await openShell(sandbox, words, globals) : await runSsh(sandbox, gateway, words);
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

async function runSsh(
  { name, info: { slug } }: Sandbox,
  { host, port, options }: ChosenGateway,
  words: readonly string[],
): Promise<number> {
  // SAFETY: no shell; neither the slug nor the host can begin with a hyphen and be taken for an option.
  const child = spawn('ssh', [...options, '-p', String(port), `${slug}@${host}`, ...words], {
    stdio: 'inherit',
  });
  const [code, signal] = (await once(child, 'exit').catch(() => {
    throw new UsageError(`there is no ssh here\n  try: svc ssh --no-gateway ${name}`);
  })) as [number | null, NodeJS.Signals | null];
  if (code === SSH_FAILED) report(`ssh could not go on\n  try: svc ssh --no-gateway ${name}`);
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
}
