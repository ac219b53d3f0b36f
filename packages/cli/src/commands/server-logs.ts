import { existsSync } from 'node:fs';
import { Command } from 'commander';
import { readGlobalsHere } from '../context/require-here.ts';
import { wholeNumber } from '../arguments/number.ts';
import { formatLogLine } from '../engine/format-log.ts';
import { followLines, lastLines } from '../engine/log-lines.ts';
import { examples } from '../examples.ts';
import { printEntry, printJsonText, report } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('logs')
    .description('Shows the last lines of the log of a server that runs in the background.')
    .option('-n, --tail <count>', 'how many lines', wholeNumber(1), 50)
    .option('-f, --follow', 'and those that are written from now on, until Ctrl-C')
    .addHelpText(
      'after',
      examples(['svc server logs -f', 'follow it'], ['svc server logs -o json', 'as it is in the file']),
    )
    .action(showLogs);
}

async function showLogs(
  options: { readonly tail: number; readonly follow?: boolean },
  command: Command,
): Promise<void> {
  const { dataFolder, isJson } = await readGlobalsHere(command, 'logs');
  const { serverLogPath } = await import('@svc/server/admin');
  const path = serverLogPath(dataFolder);
  const show = (line: string) => (isJson ? printJsonText(line) : printEntry(formatLogLine(line)));
  const lines = await lastLines(path, options.tail);
  if (lines.length === 0) report(`nothing logged yet in ${path}`);
  if (options.follow === true && existsSync(path)) return followLines(path, options.tail, show);
  for (const line of lines) show(line);
}
