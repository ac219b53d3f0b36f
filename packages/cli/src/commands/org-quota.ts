import { Command } from 'commander';
import { collectQuota, type QuotaChanges } from '../arguments/quota.ts';
import { examples } from '../examples.ts';
import { asUsage, databaseOption, loadLocal, readHere } from '../local-store.ts';
import { formatLimit, labelOfLimit, LIMITS_IN_ORDER } from '../terminal/limits.ts';
import { print, printJson, report } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';

export function createCommand(): Command {
  return new Command('quota')
    .description(
      'Shows what an organization has in place of the limits of its plan, and changes it.\n' +
        'A value is a number, unlimited, or plan for what the plan says. plan and is_suspended can be set as well.\nLimits:\n' +
        LIMITS_IN_ORDER.map((name) => `  ${name.padEnd(34)} ${labelOfLimit(name)}`).join('\n'),
    )
    .argument('<name>', 'organization')
    .argument('[limit=value...]', 'what to change', collectQuota)
    .addOption(databaseOption())
    .addHelpText(
      'after',
      examples(
        ['svc org quota acme', 'what acme has'],
        ['svc org quota acme max_sandboxes=100 max_vcpus_per_sandbox=unlimited', 'change two limits'],
        ['svc org quota acme max_sandboxes=plan', 'as the plan says again'],
      ),
    )
    .action(quota);
}

async function quota(
  slug: string,
  changes: QuotaChanges | undefined,
  _options: unknown,
  command: Command,
): Promise<void> {
  const { place, isJson } = await readHere(command, 'organizations');
  const { setLocalQuotas } = await loadLocal(place);
  const { plan, isSuspended, quotas } = await setLocalQuotas(place, slug, changes ?? {}).catch(asUsage);
  if (isJson) return printJson({ slug, plan, is_suspended: isSuspended, quotas });
  report(
    `organization ${slug}, plan ${plan}${isSuspended ? ', suspended' : ''}, data in ${place.dataFolder}`,
  );
  const rows = LIMITS_IN_ORDER.flatMap((name) => {
    const value = quotas[name];
    return value === undefined ? [] : [[labelOfLimit(name), formatLimit(name, value)]];
  });
  if (rows.length > 0) print(formatTable(['LIMIT', 'VALUE'], rows));
  else report('  no limits of its own: those of the plan hold');
}
