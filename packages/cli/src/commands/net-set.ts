import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { addNetworkOptions, toNetworkChange, type NetworkOptions } from '../sandbox/network-options.ts';
import { print, printJson } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';

export function createCommand(): Command {
  const set = new Command('set')
    .description(
      'Changes what a sandbox may reach: at once if it runs, and for its later runs. The rules given here replace\n' +
        'those it has; connections that are denied now end.',
    )
    .argument('<name>', 'the sandbox');
  return addNetworkOptions(set)
    .option('--no-net-strict', 'the opposite of --net-strict')
    .addHelpText(
      'after',
      examples(
        ['svc net set web --net none', 'it reaches nothing'],
        ['svc net set web --net none --net-rule allow@domain=example.com:tcp:443', 'one site'],
        [
          'svc net set web --net-rule deny@suffix=ads.example,allow@10.0.0.0/8:tcp:5432',
          'and all that is public',
        ],
      ),
    )
    .action(setNetwork);
}

async function setNetwork(name: string, options: NetworkOptions, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const change = toNetworkChange(options);
  if (Object.keys(change).length === 0)
    throw new UsageError(
      'Say what to change: --net, --net-rule, --net-strict, --max-connections or --secret',
    );
  const { connectSandbox } = await import('../server/connect.ts');
  const sandbox = await connectSandbox(globals, name);
  await sandbox.network.update(change);
  if (globals.isJson) printJson(change);
  else print(sandbox.name);
}
