import { Command } from 'commander';
import about from '../../package.json' with { type: 'json' };
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson, reportEntry } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('version')
    .description('Prints the version of this program, and of the server that it talks to when that answers.')
    .addHelpText('after', examples(['svc version', 'both'], ['svc --version', 'of this program alone']))
    .action(showVersion);
}

async function showVersion(_options: unknown, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const { Capabilities, SvcError } = await import('@svc/sdk');
  const { resolveServer } = await import('../context/resolve-server.ts');
  const { connectServer } = await import('../server/connect.ts');
  const { url } = await resolveServer(globals);
  const answer = await Capabilities.get({ client: await connectServer(globals) }).catch((error: unknown) => {
    // The version of this program is known without the server.
    if (SvcError.is(error)) return error;
    throw error;
  });
  const server = answer instanceof SvcError ? null : { url, version: answer.version };
  if (globals.isJson) return printJson({ client: { version: about.version }, server });
  print(`svc     ${about.version}`);
  if (server !== null) print(`server  ${server.version} at ${url}`);
  else if (answer instanceof SvcError) reportEntry(`the server does not say: ${answer.message}`);
}
