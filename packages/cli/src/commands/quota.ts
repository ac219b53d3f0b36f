import { Command } from 'commander';
import type { LimitName } from '@svc/contract/rest';
import type { RestCallOutput } from '@svc/sdk';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { formatBytes } from '../terminal/amounts.ts';
import { formatLimit, labelOfLimit, LIMITS_IN_ORDER } from '../terminal/limits.ts';
import { print, printJson, report } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';

export function createCommand(): Command {
  return new Command('quota')
    .description('Shows the limits of the organization and how much of them is taken.')
    .addHelpText(
      'after',
      examples(
        ['svc quota', 'limits in force'],
        ['svc org quota acme max_sandboxes=100', 'to change them, on the server'],
      ),
    )
    .action(async (_options: unknown, command: Command) => {
      const globals = readGlobals(command);
      const { Usage } = await import('@svc/sdk');
      const { connectServer } = await import('../server/connect.ts');
      const quotas = await Usage.quotas({ client: await connectServer(globals) });
      if (globals.isJson) return printJson(quotas);
      if (quotas.is_suspended) report('the organization is suspended: nothing can be made or started');
      const used = usedOf(quotas);
      const rows = LIMITS_IN_ORDER.map((name) => [
        labelOfLimit(name),
        used[name] ?? '',
        formatLimit(name, quotas[name]),
      ]);
      print(formatTable(['WHAT', 'USED', 'LIMIT'], rows));
      if (quotas.pool_exhausted)
        report('what the month includes is used up: nothing starts until the next month');
    });
}

function usedOf(quotas: RestCallOutput<'quotas.get'>): Partial<Record<LimitName, string>> {
  const { image_storage_bytes: imageBytes } = quotas;
  return {
    max_sandboxes: String(quotas.total_sandboxes),
    max_concurrent_ephemeral_running: String(quotas.concurrent_ephemeral_running),
    max_concurrent_persistent_running: String(quotas.concurrent_persistent_running),
    max_snapshot_storage_gib: formatBytes(quotas.snapshot_storage_bytes),
    max_image_storage_gib: imageBytes === null ? 'not known now' : formatBytes(imageBytes),
    included_vcpu_hours: quotas.vcpu_hours_used.toFixed(3),
    included_memory_gib_hours: quotas.memory_gib_hours_used.toFixed(3),
  };
}
