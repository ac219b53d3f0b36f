import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { portsOf } from '../sandbox/spec-view.ts';
import { print, printJson, tell } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('port')
    .description("Shows the ports of the server's host that lead into a sandbox.")
    .argument('<name>', 'the sandbox')
    .addHelpText(
      'after',
      examples(
        ['svc port web', 'all of them'],
        ['svc run -d --name web -p 8080:80 IMAGE', 'how they are published'],
      ),
    )
    .action(async (name: string, _options: unknown, command: Command) => {
      const globals = readGlobals(command);
      const { Sandbox } = await import('@svc/sdk');
      const { connectServer } = await import('../server/connect.ts');
      const { info } = await Sandbox.connect(name, { client: await connectServer(globals) });
      const ports = portsOf(info);
      if (globals.isJson) return printJson(ports);
      if (ports.length === 0)
        return tell(`${name} has no published ports; they are chosen when it is made: svc run -p HOST:GUEST`);
      for (const { guest_port: guest, protocol, host_bind: host, host_port: port } of ports)
        print(`${guest}/${protocol} -> ${host.includes(':') ? `[${host}]` : host}:${port}`);
    });
}
