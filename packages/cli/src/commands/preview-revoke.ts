import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';

export function createCommand(): Command {
  return new Command('revoke')
    .alias('rm')
    .description('Makes previews worthless. Connections that they opened end within a minute.')
    .argument('<sandbox>', 'the sandbox')
    .argument('<id...>', 'as svc preview ls shows it; its beginning will do')
    .addHelpText('after', examples(['svc preview revoke web 3f2a', 'the one whose id begins so']))
    .action(revoke);
}

async function revoke(
  name: string,
  ids: readonly string[],
  _options: unknown,
  command: Command,
): Promise<void> {
  const globals = readGlobals(command);
  const { connectSandbox } = await import('../server/connect.ts');
  const { ports } = await connectSandbox(globals, name);
  const known = (await ports.list()).map(({ id }) => id);
  const meant = ids.map((start) => {
    const found = known.filter((id) => id.startsWith(start.toLowerCase()));
    const [only] = found;
    if (only !== undefined && found.length === 1) return only;
    const why =
      only === undefined ? `${name} has no preview '${start}'` : `several previews begin with '${start}'`;
    throw new UsageError(`${why}\n  try: svc preview ls ${name}`);
  });
  for (const id of meant) {
    await ports.revoke(id);
    if (!globals.isJson) print(id);
  }
  if (globals.isJson) printJson({ revoked: meant });
}
