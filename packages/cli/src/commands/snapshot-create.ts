import { Command } from 'commander';
import { collectLabel, type Labels } from '../arguments/label.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { formatBytes } from '../terminal/amounts.ts';
import { print, printJson } from '../terminal/print.ts';

interface SnapshotCommandOptions {
  readonly force?: boolean;
  readonly label?: Labels;
}

export function createCommand(): Command {
  return new Command('create')
    .description(
      'Makes a snapshot of the disk of a sandbox, and waits until it is there. A sandbox that runs goes on.',
    )
    .argument('<sandbox>', 'the sandbox')
    .argument('<name>', 'what to call the snapshot')
    .option('-f, --force', 'replace a snapshot of this name')
    .option('-l, --label <key=value>', 'to find it by (repeatable)', collectLabel)
    .addHelpText(
      'after',
      examples(
        ['svc snapshot create web clean', 'of a sandbox that runs, or is stopped'],
        ['svc create --snapshot clean --name copy -', 'then: a sandbox that begins with it'],
      ),
    )
    .action(create);
}

async function create(
  sandboxName: string,
  name: string,
  options: SnapshotCommandOptions,
  command: Command,
): Promise<void> {
  const globals = readGlobals(command);
  const { connectSandbox } = await import('../server/connect.ts');
  const { StatusLine } = await import('../terminal/status-line.ts');
  const sandbox = await connectSandbox(globals, sandboxName);
  using _status = new StatusLine(`copying the disk of ${sandboxName}`);
  const snapshot = await sandbox.snapshot(name, {
    ...(options.force === undefined ? {} : { force: options.force }),
    ...(options.label === undefined ? {} : { labels: options.label }),
  });
  if (globals.isJson) printJson(snapshot);
  else print(`${snapshot.name}  ${formatBytes(snapshot.size_bytes)}`);
}
