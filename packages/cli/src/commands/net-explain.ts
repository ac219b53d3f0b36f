import { Command } from 'commander';
import { parseConnection, type Connection } from '../arguments/connection.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('explain')
    .description(
      'Says whether a sandbox may open a connection, by which rule and why. Exits with 0 when it may, with 1 when not.',
    )
    .argument('<name>', 'the sandbox')
    .argument('<host:port[/protocol]>', 'a name or an address; protocol: tcp, udp, icmpv4', parseConnection)
    .addHelpText(
      'after',
      examples(
        ['svc net explain web example.com:443', 'over TCP'],
        ['svc net explain web 10.0.0.7:53/udp', 'an address, over UDP'],
        ['svc net explain web 192.0.2.1/icmpv4', 'ping'],
      ),
    )
    .action(explain);
}

async function explain(
  name: string,
  connection: Connection,
  _options: unknown,
  command: Command,
): Promise<void> {
  const globals = readGlobals(command);
  const { Sandbox } = await import('@svc/sdk');
  const { connectServer } = await import('../server/connect.ts');
  const sandbox = await Sandbox.connect(name, { client: await connectServer(globals) });
  const answer = await sandbox.network.explain({ ...connection });
  if (globals.isJson) printJson(answer);
  else {
    print(answer.reason);
    const { addresses } = answer;
    if (addresses.length > 1)
      for (const { address, group, action, rule } of addresses)
        print(`  ${address} (${group ?? 'no group'}): ${action}${rule === null ? '' : ` by rule ${rule}`}`);
  }
  process.exitCode = answer.action === 'allow' ? 0 : 1;
}
