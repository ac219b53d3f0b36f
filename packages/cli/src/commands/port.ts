import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { portsOf } from '../sandbox/spec-view.ts';
import { print, printJson, report } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('port')
    .description("Shows what leads into a sandbox: ports of the server's host, and previews for browsers.")
    .argument('<name>', 'the sandbox')
    .addHelpText(
      'after',
      examples(
        ['svc port web', 'all of them'],
        ['svc run -d --name web -p 8080:80 -p 5353:53/udp IMAGE', 'how ports are published'],
        ['svc preview create web 3000', 'how previews are made'],
      ),
    )
    .action(async (name: string, _options: unknown, command: Command) => {
      const globals = readGlobals(command);
      const { connectSandbox } = await import('../server/connect.ts');
      const sandbox = await connectSandbox(globals, name);
      const ports = portsOf(sandbox.info);
      const previews = await sandbox.ports.list();
      if (globals.isJson) return printJson({ ports, previews });
      if (ports.length === 0 && previews.length === 0)
        return report(
          `nothing leads into ${name}\n  try: svc preview create ${name} PORT, or another sandbox with svc run -p HOST:GUEST`,
        );
      for (const { guest_port: guest, protocol, host_bind: host, host_port: port } of ports)
        print(`${guest}/${protocol} -> ${host.includes(':') ? `[${host}]` : host}:${port}`);
      for (const { port, url, id } of previews) print(`${port}/http -> ${url} (preview ${id.slice(0, 8)})`);
    });
}
