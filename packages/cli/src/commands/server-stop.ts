import { setTimeout as delay } from 'node:timers/promises';
import { Command } from 'commander';
import { readGlobalsHere } from '../context/require-here.ts';
import { examples } from '../examples.ts';
import { formatDuration } from '../terminal/amounts.ts';
import { print, printJson } from '../terminal/print.ts';

const STOP_TIMEOUT_MS = 40_000;
const POLL_MS = 20;

export function createCommand(): Command {
  return new Command('stop')
    .description(
      'Stops the server, and its engine unless that was started by svc engine start. Sandboxes keep running; the next server finds them again.\n' +
        'Exit codes: 0 stopped or not running, 1 failed.',
    )
    .addHelpText('after', examples(['svc server stop', 'sandboxes run on']))
    .action(stop);
}

async function stop(_options: unknown, command: Command): Promise<void> {
  const { dataFolder, isJson } = await readGlobalsHere(command, 'servers');
  const { findServer } = await import('@svc/server/admin');
  const pid = await findServer(dataFolder);
  if (pid === undefined)
    return isJson ? printJson({ stopped: false }) : print(`no server runs on the data folder ${dataFolder}`);
  process.kill(pid, 'SIGTERM');
  const deadline = performance.now() + STOP_TIMEOUT_MS;
  while ((await findServer(dataFolder)) !== undefined) {
    if (performance.now() > deadline) {
      throw new Error(
        `the server (pid ${pid}) did not stop in ${formatDuration(STOP_TIMEOUT_MS / 1000)}\n  try: svc server logs`,
      );
    }
    await delay(POLL_MS);
  }
  if (isJson) printJson({ stopped: true });
  else print(`server stopped (data in ${dataFolder}); its sandboxes run on. Next: svc server start --detach`);
}
