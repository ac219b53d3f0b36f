import { Command } from 'commander';
import type { SandboxState } from '@svc/engine/client';
import { connectEngine } from '../engine/connect.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { formatAge } from '../terminal/amounts.ts';
import { painter } from '../terminal/colours.ts';
import { print, printJson, tell } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';

const STATE_COLOUR = {
  created: 'dim',
  starting: 'yellow',
  running: 'green',
  stopping: 'yellow',
  stopped: 'dim',
  failed: 'red',
} as const satisfies Record<SandboxState, string>;

export function createCommand(): Command {
  return new Command('ls')
    .description('Lists the sandboxes of this engine.')
    .option('-q, --quiet', 'names only')
    .addHelpText(
      'after',
      examples(
        ['svc ls', 'all sandboxes'],
        ['svc rm $(svc ls -q)', 'remove all'],
        ['svc ls -o json', 'for programs'],
      ),
    )
    .action(list);
}

async function list(options: { readonly quiet?: boolean }, command: Command): Promise<void> {
  const { dataFolder, isJson, hasColours } = readGlobals(command);
  const engine = await connectEngine(dataFolder);
  const sandboxes = await engine.listSandboxes();
  if (isJson) return printJson(sandboxes);
  if (options.quiet === true) return sandboxes.forEach(({ id }) => print(id));
  if (sandboxes.length === 0) return tell('no sandboxes; make one with: svc run --name web python -- true');
  const paint = painter(hasColours);
  const now = Date.now();
  const rows = sandboxes.map(({ id, state, isolation, image, spec, createdAt, end }) => [
    id,
    paint(STATE_COLOUR[state], state),
    isolation,
    image.reference,
    String(spec.resources?.vcpus ?? 1),
    `${spec.resources?.memory_mib ?? 512}M`,
    formatAge(createdAt, now),
    end === null ? '' : end.message,
  ]);
  print(formatTable(['NAME', 'STATE', 'CLASS', 'IMAGE', 'CPUS', 'MEMORY', 'AGE', 'LAST END'], rows));
}
