import { Command } from 'commander';
import { readGlobalsHere } from '../context/require-here.ts';
import { wholeNumber } from '../arguments/number.ts';
import { logPath } from '../engine/engine-process.ts';
import { formatLogLine } from '../engine/format-log.ts';
import { lastLines } from '../engine/log-lines.ts';
import { examples } from '../examples.ts';
import { printEntry, printJsonText, report } from '../terminal/print.ts';

export function createCommand(): Command {
  return new Command('logs')
    .description('Shows the last lines of the log of an engine that runs in the background.')
    .option('-n, --tail <count>', 'how many lines', wholeNumber(1), 50)
    .addHelpText(
      'after',
      examples(
        ['svc engine logs', 'the last 50 lines'],
        ['svc engine logs -o json', 'as they are in the file'],
      ),
    )
    .action(async (options: { readonly tail: number }, command: Command) => {
      const { dataFolder, isJson } = await readGlobalsHere(command, 'logs');
      const lines = await lastLines(logPath(dataFolder), options.tail);
      if (lines.length === 0) report(`nothing logged yet in ${logPath(dataFolder)}`);
      for (const line of lines) {
        if (isJson) printJsonText(line);
        else printEntry(formatLogLine(line));
      }
    });
}
