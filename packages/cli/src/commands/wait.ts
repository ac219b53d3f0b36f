import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('wait')
    .description(
      'Waits until sandboxes end, and prints the exit code of the main command of each: 128+n when signal n ended it,\n' +
        '0 when the sandbox was stopped.',
    )
    .argument('<name...>', 'the sandboxes')
    .addHelpText(
      'after',
      examples(
        ["svc run -d --name job python python3 -c 'exit(3)'", 'first: something that ends'],
        ['svc wait job', 'prints 3'],
      ),
    )
    .action(waitForEnd);
}

async function waitForEnd(names: readonly string[], _options: unknown, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const { Sandbox } = await import('@svc/sdk');
  const { mainExitCode } = await import('../sandbox/exit-code.ts');
  const { connectServer } = await import('../server/connect.ts');
  const client = await connectServer(globals);
  const codes: { name: string; exit_code: number }[] = [];
  for (const name of names) {
    const code = await mainExitCode(await Sandbox.connect(name, { client }));
    codes.push({ name, exit_code: code });
    if (!globals.isJson) print(String(code));
  }
  if (globals.isJson) printJson(codes);
}
