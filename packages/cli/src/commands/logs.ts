import { showLine } from '@svc/contract/visible';
import type { LogEntry, LogSource } from '@svc/sdk';
import { Command, InvalidArgumentError } from 'commander';
import { wholeNumber } from '../arguments/number.ts';
import { parseTime } from '../arguments/time.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { printJsonLine } from '../terminal/print.ts';

const SOURCES: readonly LogSource[] = ['stdout', 'stderr', 'output', 'system'];

interface LogCommandOptions {
  readonly follow?: boolean;
  readonly tail?: number;
  readonly since?: string;
  readonly until?: string;
  readonly source?: readonly LogSource[];
  readonly timestamps?: boolean;
}

export function createCommand(): Command {
  return new Command('logs')
    .description(
      'Shows what the main command of a sandbox wrote, and with --source system what happened to the sandbox.',
    )
    .argument('<name>', 'the sandbox')
    .option('-f, --follow', 'go on as more is written, until the sandbox stops')
    .option('-n, --tail <count>', 'the last entries only', wholeNumber(0))
    .option('--since <time>', 'from this time on (RFC 3339, or 10m for ten minutes ago)', parseTime)
    .option('--until <time>', 'up to this time', parseTime)
    .option('-t, --timestamps', 'begin every line with its time and source')
    .option('-s, --source <source>', 'stdout, stderr, output or system (repeatable)', collectSource)
    .addHelpText(
      'after',
      examples(
        ['svc logs -f web', 'follow'],
        ['svc logs --since 10m --tail 100 web', 'the end of the last ten minutes'],
        ['svc logs -s system web', 'starts, stops and their reasons'],
      ),
    )
    .action(showLogs);
}

async function showLogs(name: string, options: LogCommandOptions, command: Command): Promise<void> {
  const globals = readGlobals(command);
  const { connectSandbox } = await import('../server/connect.ts');
  const sandbox = await connectSandbox(globals, name);
  const { follow, tail, since, until, source: sources, timestamps: hasTimestamps = false } = options;
  const wanted = {
    ...(follow === undefined ? {} : { follow }),
    ...(tail === undefined ? {} : { tail }),
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
    ...(sources === undefined ? {} : { sources }),
  };
  for await (const entry of sandbox.logs(wanted)) {
    if (globals.isJson) printJsonLine(toJson(entry));
    else showEntry(entry, hasTimestamps);
  }
}

/** The options with the names of the REST API. */
function toJson({ cursor, time, source, text }: LogEntry): object {
  return { cursor, ts: time, source, text };
}

function showEntry(entry: LogEntry, hasTimestamps: boolean): void {
  const stream = entry.source === 'stderr' ? process.stderr : process.stdout;
  // Output is printed in the pieces in which it was written, without changes; system entries are lines.
  const text = entry.source === 'system' ? `${showLine(entry.text.replace(/\n$/, ''))}\n` : entry.text;
  if (!hasTimestamps) return void stream.write(text);
  for (const line of text.replace(/\n$/, '').split('\n'))
    stream.write(`${entry.time} ${entry.source} ${line}\n`);
}

/** A stream of a sandbox's log; repeatable. */
function collectSource(text: string, earlier: readonly LogSource[] = []): readonly LogSource[] {
  const source = SOURCES.find((known) => known === text);
  if (source === undefined) throw new InvalidArgumentError(`Give one of ${SOURCES.join(', ')}.`);
  return [...earlier, source];
}
