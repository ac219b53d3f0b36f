import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('kill')
    .description('Sends a signal to a process and all that it started.')
    .argument('<sandbox>', 'the sandbox')
    .argument('<process>', 'id or name')
    .option('-s, --signal <signal>', 'name or number', 'SIGTERM')
    .addHelpText(
      'after',
      examples(
        ['svc process kill web job', 'asks it to end'],
        ['svc process kill -s KILL web job', 'ends it'],
      ),
    )
    .action(kill);
}

async function kill(
  name: string,
  processId: string,
  options: { readonly signal: string },
  command: Command,
): Promise<void> {
  const globals = readGlobals(command);
  const { Sandbox } = await import('@svc/sdk');
  const { connectServer } = await import('../server/connect.ts');
  const client = await connectServer(globals);
  const { id } = await Sandbox.connect(name, { client });
  const signal = /^\d+$/.test(options.signal) ? Number(options.signal) : options.signal.toUpperCase();
  const input = { params: { sandbox_id: id, process_id: processId }, body: { signal } };
  const process = await client.call('processes.signal', input);
  if (globals.isJson) printJson(process);
  else print(processId);
}
