import { Command } from 'commander';
import type { Sandbox } from '@svc/sdk';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { report } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('attach')
    .description(
      'Shows what the main command of a sandbox writes from now on, until it ends. Ctrl-C leaves it running.\n' +
        "A main command has no input; a process to come back to is made with svc exec -dit.\nExit code: the command's.",
    )
    .argument('<name>', 'the sandbox')
    .addHelpText(
      'after',
      examples(
        ['svc attach web', 'what it writes; svc logs shows what it wrote before'],
        ['svc exec -dit --name session web sh', 'a terminal to come back to, and then:'],
        ['svc process attach web session', 'with input'],
      ),
    )
    .action(attach);
}

async function attach(name: string, _options: unknown, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const { connectRunning } = await import('../sandbox/connect-running.ts');
  const { mainExitCode } = await import('../sandbox/exit-code.ts');
  const { connectServer } = await import('../server/connect.ts');
  const sandbox = await connectRunning(name, await connectServer(globals));
  if (process.stdin.isTTY)
    report(`the main command of ${name} has no input; a terminal in it is: svc exec -it ${name} sh`);
  const after = await lastCursor(sandbox);
  const entries = sandbox.logs({ follow: true, ...(after === undefined ? {} : { after }) });
  for await (const { source, text } of entries)
    (source === 'stderr' ? process.stderr : process.stdout).write(text);
  await sandbox.refresh();
  process.exitCode = await mainExitCode(sandbox);
}

/** Undefined: there is no output yet. */
async function lastCursor(sandbox: Sandbox): Promise<string | undefined> {
  let last: string | undefined;
  for await (const { cursor } of sandbox.logs({ tail: 1 })) last = cursor;
  return last;
}
