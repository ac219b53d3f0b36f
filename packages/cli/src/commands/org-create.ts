import { Command } from 'commander';
import { examples } from '../examples.ts';
import { asUsage, databaseOption, loadLocal, readHere } from '../local-store.ts';
import { print, printJson, report } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('create')
    .description(
      'Makes an organization and prints its id. Its name is also its namespace on the JSON-RPC and MCP surfaces.\n' +
        'A namespace that is in use and has no members is taken over.',
    )
    .argument('<name>', 'lowercase letters, digits and single hyphens')
    .option('--owner <email>', 'who owns it; a user is made when missing')
    .option('--display-name <text>', 'what people call it (default: the name)')
    .addOption(databaseOption())
    .addHelpText(
      'after',
      examples(
        ['svc org create acme --owner ann@example.com', 'an organization with an owner'],
        ['svc token create --user ann@example.com', 'then: a token for the owner'],
        ['svc apikey create --org acme', 'or: a key for its programs'],
      ),
    )
    .action(create);
}

async function create(
  slug: string,
  { owner, displayName }: { readonly owner?: string; readonly displayName?: string },
  command: Command,
): Promise<void> {
  const { place, isJson } = await readHere(command, 'organizations');
  const { createLocalOrganization } = await loadLocal(place);
  const made = await createLocalOrganization(place, { slug, name: displayName, owner }).catch(asUsage);
  if (isJson) {
    return printJson({ id: made.id, slug: made.slug, name: made.name, created_at: made.createdAt });
  }
  print(made.id);
  report(
    `organization ${made.slug} is made in ${place.dataFolder}${owner === undefined ? '' : `; ${owner} owns it`}`,
  );
}
