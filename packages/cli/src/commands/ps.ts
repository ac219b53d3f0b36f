import { Command } from 'commander';
import type { Client, Sandbox } from '@svc/sdk';
import { collectFilter, passesFilters, type Filter } from '../arguments/filter.ts';
import { collectLabel, type Labels } from '../arguments/label.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { AT_REST } from '../sandbox/at-rest.ts';
import { formatSandboxes } from '../sandbox/format-template.ts';
import { resourcesOf } from '../sandbox/spec-view.ts';
import { formatAge, formatBytes } from '../terminal/amounts.ts';
import { painter } from '../terminal/colours.ts';
import { print, printDrawn, printJson, report } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';

type Status = Sandbox['status'];

const COLOUR = {
  created: 'dim',
  starting: 'yellow',
  running: 'green',
  temporarily_unavailable: 'yellow',
  recovery_decision_required: 'red',
  stopping: 'yellow',
  stopped: 'dim',
  failed: 'red',
} as const satisfies Record<Status, string>;

interface ListOptions {
  readonly all?: boolean;
  readonly allOrgs?: boolean;
  readonly quiet?: boolean;
  readonly label?: Labels;
  readonly filter?: readonly Filter[];
  readonly format?: string;
}

export function createCommand(): Command {
  return new Command('ps')
    .description('Lists sandboxes that run; with --all also those that do not.')
    .option('-a, --all', 'also those that do not run')
    .option('-A, --all-orgs', 'of every organization that you belong to; in development mode of all')
    .option('-q, --quiet', 'names only')
    .option('-l, --label <key=value>', 'only those with this label (repeatable)', collectLabel)
    .option(
      '-f, --filter <key=value>',
      'only those with this name, id, status, label, image or isolation (repeatable)',
      collectFilter,
    )
    .option(
      '--format <template>',
      "a line for each, such as '{{.Name}} {{.Status}}'; begins with table: in columns",
    )
    .addHelpText(
      'after',
      examples(
        ['svc ps', 'what runs'],
        ['svc ps --all --label team=ml', 'all of a team'],
        ['svc ps -aA', 'everything, wherever it was made'],
        ['svc rm -f $(svc ps -aq)', 'remove all'],
        ['svc rm -f --org acme $(svc ps -aq --org acme)', 'remove all of acme'],
        ['svc ps -f status=failed', 'those that failed; a status is looked for in all'],
        ["svc ps --format '{{.Name}}: {{.Ports}}'", 'what a script needs'],
        ["svc ps --format 'table {{.Name}}\\t{{.Image}}'", 'in columns'],
        ['svc ps -a -o json', 'for programs'],
      ),
    )
    .action(list);
}

async function list(options: ListOptions, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const { Sandbox } = await import('@svc/sdk');
  const { connectServer } = await import('../server/connect.ts');
  const client = await connectServer(globals);
  const labels = options.label === undefined ? {} : { labels: options.label };
  const slugs = options.allOrgs === true ? await listSlugs(client) : undefined;
  const found: Sandbox[] = [];
  const owners = new Map<Sandbox, string>();
  for (const slug of slugs ?? [undefined]) {
    const scoped =
      slug === undefined ? client : await connectServer({ ...globals, chosenOrganization: slug });
    for await (const sandbox of Sandbox.list({ client: scoped, ...labels })) {
      found.push(sandbox);
      if (slug !== undefined) owners.set(sandbox, slug);
    }
  }
  const { filter: filters = [], format } = options;
  // A filter for a status implies --all.
  const hasAll = options.all === true || filters.some(({ key }) => key === 'status');
  const passing = found.filter(({ info }) => passesFilters(info, filters));
  const shown = passing.filter(({ status }) => hasAll || !AT_REST.has(status));
  if (format !== undefined)
    return void process.stdout.write(
      formatSandboxes(
        format,
        shown.map(({ info }) => info),
      ),
    );
  if (globals.isJson) return printJson(shown.map(({ info }) => info));
  if (options.quiet === true) return shown.forEach(({ name }) => print(name));
  const hidden = passing.length - shown.length;
  if (shown.length > 0) printDrawn(table(shown, owners, globals.hasColours));
  else if (filters.length > 0) report('no sandbox passes the filters');
  else report(hidden > 0 ? 'no sandbox runs' : 'no sandboxes; make one with: svc run -d --name web python');
  if (hidden > 0 && process.stderr.isTTY) report(`${hidden} more do not run: svc ps --all`);
}

async function listSlugs(client: Client): Promise<readonly string[]> {
  const { Organization } = await import('@svc/sdk');
  return (await Organization.list({ client })).map(({ slug }) => slug);
}

/** `owners`: the organization of each sandbox, when more than one organization was queried. */
function table(
  sandboxes: readonly Sandbox[],
  owners: ReadonlyMap<Sandbox, string>,
  hasColours: boolean,
): string {
  const paint = painter(hasColours);
  const now = Date.now();
  // On one machine there are no nodes.
  const hasNodes = sandboxes.some(({ info }) => info.node !== null);
  const rows = sandboxes.map((sandbox) => {
    const { info } = sandbox;
    const { vcpus, memoryMib } = resourcesOf(info);
    return [
      ...(owners.size > 0 ? [owners.get(sandbox) ?? '-'] : []),
      info.name,
      paint(COLOUR[info.status], info.status),
      ...(hasNodes ? [info.node ?? '-'] : []),
      info.isolation ?? '-',
      info.spec?.image ?? '-',
      String(vcpus ?? '-'),
      memoryMib === null ? '-' : formatBytes(memoryMib * 2 ** 20),
      formatAge(info.created_at, now),
      info.last_failure_message ?? '',
    ];
  });
  const owner = owners.size > 0 ? ['ORGANIZATION'] : [];
  return formatTable(
    [
      ...owner,
      'NAME',
      'STATUS',
      ...(hasNodes ? ['NODE'] : []),
      'CLASS',
      'IMAGE',
      'CPUS',
      'MEMORY',
      'AGE',
      'FAILURE',
    ],
    rows,
  );
}
