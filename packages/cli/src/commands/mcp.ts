import { Command } from 'commander';
import { resolveServer } from '../context/resolve-server.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { UsageError } from '../usage-error.ts';

export function createCommand(): Command {
  return new Command('mcp')
    .description(
      'Speaks MCP on standard input and output for a tool that starts its servers itself, and forwards it to a running server.\n' +
        'Which server, and with which key: svc context --help.',
    )
    .option('--url <url>', 'address of the server, with the key in SVC_API_KEY')
    .addHelpText(
      'after',
      examples(
        ['svc mcp', 'as the command in the configuration of an MCP client'],
        ['svc mcp --url http://10.0.0.5:5555', 'with a server elsewhere'],
      ),
    )
    .action(serveMcp);
}

async function serveMcp(options: { readonly url?: string }, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const { url: given, apiKey } =
    options.url === undefined ? await resolveServer(globals) : { url: options.url, apiKey: globals.apiKey };
  if (!URL.canParse(given) || !/^https?:$/.test(new URL(given).protocol)) {
    throw new UsageError(`the server's address must be like http://127.0.0.1:5555, not '${given}'`);
  }
  const { StdioForwarder } = await import('../mcp/stdio-forwarder.ts');
  const forwarder = new StdioForwarder({ serverUrl: given.replace(/\/+$/, ''), apiKey });
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => void forwarder.close());
  await forwarder.run();
}
