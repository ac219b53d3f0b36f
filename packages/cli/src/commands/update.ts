import { Command } from 'commander';
import type { Sandbox } from '@svc/sdk';
import { parseSeconds } from '../arguments/number.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';

const NEVER = 'none';
/** A number of seconds, or `none`. Commander reads a null from a parser as an option without a value. */
type Limit = number | typeof NEVER;

interface UpdateOptions {
  readonly maxDuration?: Limit;
  readonly idleTimeout?: Limit;
  readonly endsIn?: number;
  readonly keepAlive?: boolean;
}

export function createCommand(): Command {
  return new Command('update')
    .description('Changes how long sandboxes may run and be idle, at once and for their next runs.')
    .argument('<name...>', 'the sandboxes')
    .option('--max-duration <time>', 'stop it this long after its start (8h); none: never', parseLimit)
    .option(
      '--idle-timeout <time>',
      'stop it after this long with nothing going on (10m); none: never',
      parseLimit,
    )
    .option('--ends-in <time>', 'stop it this long from now (30m)', parseSeconds)
    .option('--keep-alive', 'let its idle time begin anew')
    .addHelpText(
      'after',
      examples(
        ['svc update --ends-in 30m web', 'half an hour more, or less'],
        ['svc update --max-duration none --idle-timeout 10m web', 'until it is idle for 10 minutes'],
        ['svc update --keep-alive web', 'its idle time begins anew'],
      ),
    )
    .action(update);
}

function parseLimit(text: string): Limit {
  return text === NEVER ? NEVER : parseSeconds(text);
}

function secondsOf(limit: Limit): number | null {
  return limit === NEVER ? null : limit;
}

async function update(names: readonly string[], options: UpdateOptions, command: Command): Promise<void> {
  const { maxDuration, endsIn, idleTimeout, keepAlive } = options;
  if ([maxDuration, endsIn, idleTimeout, keepAlive].every((option) => option === undefined))
    throw new UsageError('nothing to change was given\n  try: svc update --ends-in 30m NAME');
  if (maxDuration !== undefined && endsIn !== undefined)
    throw new UsageError('give --max-duration, counted from the start, or --ends-in, counted from now');
  const globals = readGlobals(command);
  const { Sandbox } = await import('@svc/sdk');
  const { connectServer } = await import('../server/connect.ts');
  const client = await connectServer(globals);
  const changed: Sandbox['info'][] = [];
  for (const name of names) {
    const sandbox = await Sandbox.connect(name, { client });
    await change(sandbox, options);
    changed.push(sandbox.info);
    if (!globals.isJson) print(`${name}${describeEnd(sandbox)}`);
  }
  if (globals.isJson) printJson(changed);
}

async function change(sandbox: Sandbox, options: UpdateOptions): Promise<void> {
  const { maxDuration, endsIn, idleTimeout, keepAlive } = options;
  if (maxDuration !== undefined || idleTimeout !== undefined)
    await sandbox.setLifecycle({
      ...(maxDuration === undefined ? {} : { maxDurationSecs: secondsOf(maxDuration) }),
      ...(idleTimeout === undefined ? {} : { idleTimeoutSecs: secondsOf(idleTimeout) }),
    });
  if (endsIn !== undefined) await sandbox.setTimeout(endsIn * 1000);
  if (keepAlive === true) await sandbox.keepAlive();
}

function describeEnd({ info }: Sandbox): string {
  const end = info.ends_at ?? null;
  return end === null ? '' : ` ends at ${end}`;
}
