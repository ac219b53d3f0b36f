import { Command } from 'commander';
import type { LogEntry, LogSource } from '@svc/engine/client';
import { collectSource } from '../arguments/log-source.ts';
import { wholeNumber } from '../arguments/number.ts';
import { connectEngine } from '../engine/connect.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';

interface LogOptions {
  readonly follow?: boolean;
  readonly tail?: number;
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
    .option('-t, --timestamps', 'begin every line with its time and source')
    .option('-s, --source <source>', 'stdout, stderr, output or system (repeatable)', collectSource)
    .addHelpText(
      'after',
      examples(['svc logs -f web', 'follow'], ['svc logs -s system web', 'starts, stops and their reasons']),
    )
    .action(showLogs);
}

async function showLogs(name: string, options: LogOptions, command: Command): Promise<void> {
  const { dataFolder, isJson } = readGlobals(command);
  const engine = await connectEngine(dataFolder);
  const wanted = {
    ...(options.tail === undefined ? {} : { tail: options.tail }),
    ...(options.source === undefined ? {} : { sources: options.source }),
  };
  const { followLogs } = await import('../sandbox/follow-logs.ts');
  const entries = options.follow === true ? followLogs(engine, name, wanted) : engine.logs(name, wanted);
  for await (const entry of entries) {
    if (isJson) process.stdout.write(`${JSON.stringify(entry)}\n`);
    else showEntry(entry, options.timestamps === true);
  }
}

function showEntry(entry: LogEntry, hasTimestamps: boolean): void {
  const stream = entry.source === 'stderr' ? process.stderr : process.stdout;
  // Output comes in pieces as it was written; entries of the system are lines.
  const text = entry.source === 'system' && !entry.text.endsWith('\n') ? `${entry.text}\n` : entry.text;
  if (!hasTimestamps) return void stream.write(text);
  for (const line of text.replace(/\n$/, '').split('\n'))
    stream.write(`${entry.time} ${entry.source} ${line}\n`);
}
