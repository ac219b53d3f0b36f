import { constants } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { Command } from 'commander';
import type { Sandbox } from '@svc/sdk';
import { parseSignal } from '../arguments/signal.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { AT_REST, stopUnlessAtRest } from '../sandbox/at-rest.ts';
import { ownWordsOf, shellOf } from '../sandbox/spec-view.ts';

/** How long a sandbox may take to notice the end of its main command. */
const [LOOK_MS, MOST_LOOKS] = [25, 40];

export function createCommand(): Command {
  return new Command('kill')
    .description(
      'Kills every process of sandboxes, without asking them to end, and stops the sandboxes. The disks stay.\n' +
        'With --signal the processes get that signal, all of them, and the sandboxes go on for as long as their main command does.',
    )
    .argument('<name...>', 'the sandboxes')
    .option('-s, --signal <signal>', 'name or number', parseSignal, 'KILL')
    .addHelpText(
      'after',
      examples(
        ['svc kill web', 'at once; svc stop asks first'],
        ['svc kill -s HUP web', 'tell every process of it'],
        ['svc process kill -s HUP web job', 'one detached process'],
      ),
    )
    .action(kill);
}

async function kill(
  names: readonly string[],
  { signal }: { readonly signal: string },
  command: Command,
): Promise<void> {
  const globals = readGlobals(command);
  const { connectRunning } = await import('../sandbox/connect-running.ts');
  const { eachSandbox } = await import('../sandbox/each-sandbox.ts');
  const { connectServer } = await import('../server/connect.ts');
  const client = await connectServer(globals);
  await eachSandbox(client, names, globals.isJson, async ({ name }) => {
    const sandbox = await connectRunning(name, client);
    await (signal === 'KILL' ? end(sandbox) : send(sandbox, signal));
    return sandbox.info;
  });
}

/** Kills every process first, so that the stop need not wait for them. */
async function end(sandbox: Sandbox): Promise<void> {
  const { SvcError } = await import('@svc/sdk');
  // An image without a shell cannot run `kill`; the stop then kills the processes. The sandbox may also end before the answer arrives.
  const isKilled = await send(sandbox, 'KILL').then(
    () => true,
    (error: unknown) => {
      if (!SvcError.is(error)) throw error;
      return error.code !== 'exec_failed';
    },
  );
  await sandbox.refresh();
  if (isKilled && ownWordsOf(sandbox.info).length > 0) await untilOver(sandbox);
  await stopUnlessAtRest(sandbox);
}

/** A killed main command ends its sandbox, and `svc wait` reports that; an earlier stop would hide it. */
async function untilOver(sandbox: Sandbox): Promise<void> {
  for (let looks = 0; !AT_REST.has(sandbox.status) && looks < MOST_LOOKS; looks++) {
    await delay(LOOK_MS);
    await sandbox.refresh();
  }
}

/** Sends the signal to all processes but the sender and PID 1, which is svc-init. */
async function send(sandbox: Sandbox, signal: string): Promise<void> {
  // `kill` is built into shells. Their names of signals differ, the numbers do not.
  const number = constants.signals[`SIG${signal}` as NodeJS.Signals];
  const script = `kill -${number} -1 2>/dev/null || :`;
  await sandbox.exec(shellOf(sandbox.info), ['-c', script], { user: '0' });
}
