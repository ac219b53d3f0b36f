import { Command } from 'commander';
import { readContexts } from '../context/context-file.ts';
import { LOCAL_URL, resolveServer } from '../context/resolve-server.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson, report } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';

export function createCommand(): Command {
  return new Command('ls')
    .alias('list')
    .description('Lists contexts, and says which server commands talk to right now.')
    .option('-q, --quiet', 'names only')
    .addHelpText('after', examples(['svc context ls', 'all of them']))
    .action(list);
}

async function list(options: { readonly quiet?: boolean }, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const { active, contexts } = await readContexts(globals.contextFolder);
  const all = Object.entries(contexts).map(([name, context]) => ({
    name,
    ...context,
    is_active: name === active,
  }));
  if (globals.isJson) return printJson(all);
  if (options.quiet === true) return all.forEach(({ name }) => print(name));
  if (all.length > 0) {
    const rows = all.map(({ name, url, apiKeyRef, organization, is_active: isActive }) => [
      isActive ? '*' : '',
      name,
      url,
      apiKeyRef ?? 'none',
      organization ?? '-',
    ]);
    print(formatTable(['IN USE', 'NAME', 'URL', 'KEY', 'ORGANIZATION'], rows));
  }
  // The list is shown even when a key cannot be read.
  const place = await resolveServer(globals).catch(() => ({ url: LOCAL_URL, source: 'this machine' }));
  report(`commands talk to ${place.url} (${place.source})`);
}
