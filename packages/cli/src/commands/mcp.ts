import { Command } from 'commander';
import { readConfig } from '../config.ts';
import { examples } from '../examples.ts';
import { UsageError } from '../usage-error.ts';

export function createCommand(): Command {
  return new Command('mcp')
    .description(
      'Speaks MCP on standard input and output for a tool that starts its servers itself, and forwards it to a running server.\n' +
        'The key is read from SVC_API_KEY.',
    )
    .option('--url <url>', 'address of the server (default: $SVC_SERVER_URL or http://127.0.0.1:5555)')
    .addHelpText(
      'after',
      examples(
        ['svc mcp', 'as the command in the configuration of an MCP client'],
        ['svc mcp --url http://10.0.0.5:5555', 'with a server elsewhere'],
      ),
    )
    .action(serveMcp);
}

async function serveMcp(options: { readonly url?: string }): Promise<void> {
  const { serverUrl, apiKey } = readConfig({});
  const given = options.url ?? serverUrl;
  if (!URL.canParse(given) || !/^https?:$/.test(new URL(given).protocol)) {
    throw new UsageError(`the server's address must be like http://127.0.0.1:5555, not '${given}'`);
  }
  const { StdioForwarder } = await import('../mcp/stdio-forwarder.ts');
  const forwarder = new StdioForwarder({ serverUrl: given.replace(/\/+$/, ''), apiKey });
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => void forwarder.close());
  await forwarder.run();
}
