import { showLines } from '@svc/contract/visible';
import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { painter } from '../terminal/colours.ts';
import type { Paint } from '../terminal/colours.ts';
import { print, printDrawn, printJson } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';
import type { Finding, HostReport } from '@svc/engine/doctor';

const MARKS = {
  ok: ['green', '✓ ok'],
  warn: ['yellow', '! warn'],
  missing: ['red', '✗ missing'],
  absent: ['dim', '- absent'],
} as const;

export function createCommand(): Command {
  return new Command('doctor')
    .description(
      'Shows what this host can do, and the remedy where something is missing. Exit code 1 when no sandbox can run.',
    )
    .option('--compact', 'only what is worth knowing after a set-up')
    .addHelpText(
      'after',
      examples(['sudo svc doctor', 'the whole table'], ['svc doctor -o json', 'for programs']),
    )
    .action(examine);
}

async function examine(options: { readonly compact?: boolean }, command: Command): Promise<void> {
  const { dataFolder, isJson, hasColours } = readGlobals(command);
  // The umask of the engine: the users of the test sandboxes must be able to pass our folders.
  process.umask(0o022);
  const { examineHost } = await import('@svc/engine/doctor');
  const report = await examineHost({ dataFolder, isThorough: options.compact !== true });
  process.exitCode = report.canRunSandboxes ? 0 : 1;
  if (isJson) return printJson(report);
  const paint = painter(hasColours);
  const isShown = ({ group, status }: Finding) =>
    options.compact !== true || ['warn', 'missing'].includes(status) || group === 'runtimes';
  printDrawn(formatReport(report.findings.filter(isShown), paint));
  print(verdict(report, options.compact === true));
}

function formatReport(findings: readonly Finding[], paint: Paint): string {
  const rows = findings.map(({ status, name, finding }) => {
    const [colour, mark] = MARKS[status];
    return [paint(colour, mark), name, finding];
  });
  const remedies = findings.flatMap(({ name, remedy }) =>
    remedy === null ? [] : [showLines(`  ${name}: ${remedy}`)],
  );
  const table = formatTable(['STATE', 'WHAT', 'FINDING'], rows);
  return remedies.length === 0 ? table : `${table}\nRemedies\n${remedies.join('\n')}\n`;
}

/** The result in one sentence. Most checks are tried for real, which needs root. */
export function verdict({ canRunSandboxes, classes, findings }: HostReport, isCompact: boolean): string {
  const lacksRights = findings.some(({ name, status }) => name === 'rights' && status === 'missing');
  if (lacksRights) return 'Only root can try whether sandboxes run here: sudo svc doctor.';
  if (!canRunSandboxes) return 'No sandbox can run here yet: see the remedies above.';
  const hidden = isCompact ? ` (${findings.length} checks; all of them: svc doctor)` : '';
  return `Sandboxes can run here. Isolation: ${classes.join(', ')}${hidden}.`;
}
