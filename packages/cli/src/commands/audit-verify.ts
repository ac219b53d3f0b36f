import { Command } from 'commander';
import type { AuditReport } from '@svc/server/local';
import { examples } from '../examples.ts';
import { databaseOption, loadLocal, readHere } from '../local-store.ts';
import { print, printJson, report } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';

export function createCommand(): Command {
  return new Command('verify')
    .description(
      'Checks that no audit event was changed, removed, replaced or added since it was written.\n' +
        'Keep the hash that it prints elsewhere: who can write the whole database could also write a whole new chain.\n' +
        'Exit codes: 0 whole, 1 broken.',
    )
    .addOption(databaseOption())
    .addHelpText(
      'after',
      examples(['svc audit verify', 'all organizations'], ['svc audit verify --org acme', 'one of them']),
    )
    .action(verify);
}

async function verify(_options: unknown, command: Command): Promise<void> {
  const { place, isJson, chosenOrganization } = await readHere(command, 'audit events');
  const { verifyLocalAudit } = await loadLocal(place);
  const reports = await verifyLocalAudit(place, chosenOrganization);
  const broken = reports.filter((report) => report.broken !== null);
  if (broken.length > 0) process.exitCode = 1;
  if (isJson) return printJson(reports);
  if (reports.length === 0) return report(`no organizations in ${place.dataFolder}, so no events`);
  print(formatTable(['ORGANIZATION', 'INTACT', 'STATE', 'LAST HASH'], reports.map(toRow)));
  for (const { slug, broken: found } of broken) report(`${slug}: ${found?.message ?? ''}`);
  report(`data in ${place.dataFolder}`);
}

function toRow({ slug, intact, hash, broken }: AuditReport): string[] {
  return [slug, String(intact), broken === null ? 'whole' : `${broken.kind} at ${broken.sequence}`, hash];
}
