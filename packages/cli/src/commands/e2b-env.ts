import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';

/** A server in development mode takes any key; the clients take any but an empty one. */
const ANY_KEY = 'development';

export function createCommand(): Command {
  return new Command('env')
    .description(
      "Prints the variables that lead E2B's clients to this server, with your API key, for a shell.\n" +
        'All of them together: without one, that client sends your key to E2B.',
    )
    .option('--domain <name>', 'the server is behind TLS: api.NAME and *.NAME lead to it')
    .addHelpText(
      'after',
      examples(
        ['eval "$(svc e2b env)"', "E2B's clients in this shell use your server"],
        ['svc e2b env --domain svc.example.com', 'through a proxy with TLS and a wildcard'],
      ),
    )
    .action(showVariables);
}

async function showVariables({ domain }: { readonly domain?: string }, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const { Capabilities } = await import('@svc/sdk');
  const { resolveServer } = await import('../context/resolve-server.ts');
  const { connectServer } = await import('../server/connect.ts');
  const { url, apiKey = ANY_KEY } = await resolveServer(globals);
  if (domain !== undefined && !/^[a-z0-9.-]+(:\d{1,5})?$/.test(domain))
    throw new UsageError(`--domain takes a name, not '${domain}'\n  try: --domain svc.example.com`);
  // A key that this server refuses is not handed to other programs.
  await Capabilities.get({ client: await connectServer(globals) });
  const origin = url.replace(/\/+$/, '');
  const variables: Readonly<Record<string, string>> = {
    E2B_API_KEY: apiKey,
    ...(domain === undefined
      ? { E2B_API_URL: origin, E2B_SANDBOX_URL: origin, E2B_VOLUME_API_URL: origin }
      : { E2B_DOMAIN: domain }),
  };
  if (globals.isJson) return printJson(variables);
  for (const [name, value] of Object.entries(variables)) print(`export ${name}=${quoted(value)}`);
}

function quoted(value: string): string {
  return /^[\w.:/@-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`;
}
