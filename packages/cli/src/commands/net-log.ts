import { Command } from 'commander';
import type { NetworkDecision } from '@svc/sdk';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { printEntry, printJsonLine, report } from '../terminal/print.ts';

interface LogOptions {
  readonly follow?: boolean;
  readonly denied?: boolean;
}

export function createCommand(): Command {
  return new Command('log')
    .description(
      'Shows what was decided about the network of a sandbox, and why: everything that was denied, as far as it is not too much, and\n' +
        'samples of what was allowed. What repeats is one line with a count; as JSON one line each.',
    )
    .argument('<name>', 'the sandbox')
    .option('-f, --follow', 'go on with what comes, until the sandbox stops')
    .option('--denied', 'only what was denied')
    .addHelpText(
      'after',
      examples(
        ['svc net log web', 'what is known'],
        ['svc net log -f --denied web', 'what is denied, as it happens'],
        ['svc net log --denied web -o json', 'for programs'],
      ),
    )
    .action(showLog);
}

async function showLog(name: string, options: LogOptions, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const { connectSandbox } = await import('../server/connect.ts');
  const sandbox = await connectSandbox(globals, name);
  let count = 0;
  const decisions = sandbox.network.log({
    ...(options.follow === true ? { follow: true } : {}),
    ...(options.denied === true ? { verdict: 'deny' } : {}),
    onLeftOut: (more) => report(`${more} more were denied and are not shown: they were too many`),
  });
  for await (const decision of decisions) {
    count += 1;
    if (globals.isJson) printJsonLine(decision);
    else printEntry(describe(decision));
  }
  if (count === 0 && !globals.isJson)
    report(options.denied === true ? 'nothing was denied' : 'nothing was decided');
}

function describe({ ts, kind, verdict, count, reason, secret }: NetworkDecision): string {
  const repeats = count > 1 ? `  (${count} times)` : '';
  const request =
    secret === null
      ? ''
      : `  ${secret.method} ${secret.path}, ${secret.env_vars.join(' and ')} (${secret.action})`;
  return `${ts}  ${verdict.padEnd(5)}  ${kind.padEnd(7)}  ${reason}${request}${repeats}`;
}
