import { Command } from 'commander';
import type { NetworkExplanation } from '@svc/sdk';
import { parseConnection, type Connection } from '../arguments/connection.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { printEntry, printJson } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('explain')
    .description(
      'Says whether a sandbox may open a connection, by which rule and why. Exits with 0 when it may, with 1 when not.',
    )
    .argument('<name>', 'the sandbox')
    .argument('<host:port[/protocol]>', 'a name or an address; protocol: tcp, udp, icmpv4', parseConnection)
    .option('--ingress', 'whether that address may connect to the published port of that number inside')
    .addHelpText(
      'after',
      examples(
        ['svc net explain web example.com:443', 'over TCP'],
        ['svc net explain web 10.0.0.7:53/udp', 'an address, over UDP'],
        ['svc net explain web 192.0.2.1/icmpv4', 'ping'],
        ['svc net explain --ingress web 192.0.2.1:8000', 'who may come in'],
      ),
    )
    .action(explain);
}

async function explain(
  name: string,
  connection: Connection,
  options: { readonly ingress?: boolean },
  command: Command,
): Promise<void> {
  const globals = readGlobals(command);
  const { connectSandbox } = await import('../server/connect.ts');
  const sandbox = await connectSandbox(globals, name);
  const answer = await sandbox.network.explain({
    ...connection,
    ...(options.ingress === true ? { direction: 'ingress' } : {}),
  });
  if (globals.isJson) printJson(answer);
  else showAnswer(answer);
  process.exitCode = answer.action === 'allow' ? 0 : 1;
}

function showAnswer({ reason, addresses, secrets }: NetworkExplanation): void {
  printEntry(reason);
  if (addresses.length > 1)
    for (const { address, group, action, rule } of addresses)
      printEntry(
        `  ${address} (${group ?? 'no group'}): ${action}${rule === null ? '' : ` by rule ${rule}`}`,
      );
  for (const { env_var: variable, action } of secrets) printEntry(`  ${variable}: ${SECRET_WORDS[action]}`);
}

const SECRET_WORDS: Readonly<Record<NetworkExplanation['secrets'][number]['action'], string>> = {
  substitute: 'the value takes the place of its placeholder',
  leave: 'a placeholder is left as it is',
  block: 'a request with its placeholder is stopped (block)',
  block_and_log: 'a request with its placeholder is stopped (block_and_log)',
  block_and_terminate: 'a request with its placeholder ends the sandbox (block_and_terminate)',
};
