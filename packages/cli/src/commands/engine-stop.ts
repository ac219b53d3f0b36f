import { setTimeout as delay } from 'node:timers/promises';
import { Command } from 'commander';
import { readGlobalsHere } from '../context/require-here.ts';
import { findEngine } from '../engine/engine-process.ts';
import { examples } from '../examples.ts';
import { formatDuration } from '../terminal/amounts.ts';
import { print, printJson } from '../terminal/print.ts';

const STOP_TIMEOUT_MS = 30_000;
const POLL_MS = 20;

export function createCommand(): Command {
  return new Command('stop')
    .description('Stops the engine. Sandboxes keep running; the next engine takes them up again.')
    .addHelpText(
      'after',
      examples(
        ['svc engine stop', 'sandboxes run on'],
        ['svc rm -f $(svc ps -q)', 'before it: end them too'],
      ),
    )
    .action(stop);
}

async function stop(_options: unknown, command: Command): Promise<void> {
  const { dataFolder, isJson } = await readGlobalsHere(command, 'engines');
  const pid = await findEngine(dataFolder);
  if (pid === undefined)
    return isJson ? printJson({ stopped: false }) : print(`no engine runs on the data folder ${dataFolder}`);
  process.kill(pid, 'SIGTERM');
  const deadline = performance.now() + STOP_TIMEOUT_MS;
  while ((await findEngine(dataFolder)) !== undefined) {
    if (performance.now() > deadline)
      throw new Error(
        `the engine (pid ${pid}) did not stop in ${formatDuration(STOP_TIMEOUT_MS / 1000)}\n  try: svc engine logs`,
      );
    await delay(POLL_MS);
  }
  if (isJson) printJson({ stopped: true });
  else print(`engine stopped (data in ${dataFolder}); its sandboxes run on. Next: svc engine start --detach`);
}
