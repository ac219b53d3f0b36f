import { Command } from 'commander';
import type { Sandbox } from '@svc/sdk';
import { profileOf } from '../arguments/net-profile.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { addNetworkOptions, toNetworkChange, type NetworkOptions } from '../sandbox/network-options.ts';
import { policyOf } from '../sandbox/spec-view.ts';
import { print, printJson } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';

export function createCommand(): Command {
  const set = new Command('set')
    .description(
      'Changes what a sandbox may reach: at once if it runs, and for its later runs. The rules given here replace\n' +
        'those it has, before what --net said, which stays unless --net is given; connections that are denied now end.',
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
          'these rules, and otherwise what it reached before',
        ],
      ),
    )
    .action(setNetwork);
}

async function setNetwork(name: string, options: NetworkOptions, command: Command): Promise<void> {
  const globals = readGlobals(command);
  if (Object.keys(toNetworkChange(options)).length === 0)
    throw new UsageError(
      'Say what to change: --net, --net-rule, --net-strict, --max-connections or --secret',
    );
  const { connectSandbox } = await import('../server/connect.ts');
  const sandbox = await connectSandbox(globals, name);
  const needsProfile = options.netRule !== undefined && options.net === undefined;
  const change = toNetworkChange(options, needsProfile ? currentProfile(sandbox) : undefined);
  await sandbox.network.update(change);
  if (globals.isJson) printJson(change);
  else print(sandbox.name);
}

function currentProfile({ name, info }: Sandbox): NonNullable<NetworkOptions['net']> {
  const policy = policyOf(info);
  if (policy !== null) return profileOf(policy);
  throw new UsageError(`What ${name} reaches is not known before its image is; give --net beside --net-rule`);
}
