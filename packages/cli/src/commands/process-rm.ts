import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('rm')
    .description('Kills a process if it runs, and forgets it with its output.')
    .argument('<sandbox>', 'the sandbox')
    .argument('<process>', 'id or name')
    .addHelpText('after', examples(['svc process rm web job', 'forget it']))
    .action(async (name: string, processId: string, _options: unknown, command: Command) => {
      const globals = readGlobals(command);
      const { Sandbox } = await import('@svc/sdk');
      const { connectServer } = await import('../server/connect.ts');
      const client = await connectServer(globals);
      const { id } = await Sandbox.connect(name, { client });
      await client.call('processes.remove', { params: { sandbox_id: id, process_id: processId } });
      if (globals.isJson) printJson({ removed: [processId] });
      else print(processId);
    });
}
