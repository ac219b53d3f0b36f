import { showJson, showLine } from '@svc/contract/visible';
import type { Sandbox } from '@svc/sdk';
import { formatAge } from '../terminal/amounts.ts';
import { formatTable } from '../terminal/table.ts';
import { UsageError } from '../usage-error.ts';
import { portsOf, resourcesOf } from './spec-view.ts';

type Info = Sandbox['info'];

/** The fields of `ps --format`, with docker's names where docker has them. */
const FIELDS: Readonly<Record<string, (info: Info) => string>> = {
  ID: ({ id }) => id,
  Name: ({ name }) => name,
  Names: ({ name }) => name,
  Image: ({ spec }) => spec?.image ?? '',
  Status: ({ status }) => status,
  State: ({ status }) => status,
  Class: ({ isolation }) => isolation ?? '',
  CPUs: (info) => String(resourcesOf(info).vcpus ?? ''),
  MemoryMiB: (info) => String(resourcesOf(info).memoryMib ?? ''),
  Ports: (info) =>
    portsOf(info)
      .map(
        ({ host_bind: bind, host_port: host, guest_port: guest, protocol }) =>
          `${bind}:${host}->${guest}/${protocol}`,
      )
      .join(', '),
  Labels: ({ spec }) =>
    Object.entries(spec?.labels ?? {})
      .map(([key, value]) => `${key}=${value}`)
      .join(','),
  CreatedAt: ({ created_at: at }) => at,
  RunningFor: ({ created_at: at }) => formatAge(at, Date.now()),
  Failure: ({ last_failure_message: message }) => message ?? '',
};

const FIELD = /\{\{\s*(.*?)\s*\}\}/g;

/**
 * One line for each sandbox: text with `{{.Field}}` in it, `\t` and `\n`; with `table ` before it, columns below titles.
 * `json` and `{{json .}}` give the object of the REST API. @throws UsageError
 */
export function formatSandboxes(template: string, infos: readonly Info[]): string {
  const [, isTable, line = ''] =
    /^(table\s+)?(.*)$/s.exec(template.replaceAll('\\t', '\t').replaceAll('\\n', '\n')) ?? [];
  if (line === 'json' || /^\{\{\s*json\s+\.\s*\}\}$/.test(line))
    return infos.map((info) => `${showJson(JSON.stringify(info))}\n`).join('');
  for (const [whole, expression = ''] of line.matchAll(FIELD)) requireField(whole, expression);
  const fill = (info: Info) =>
    line.replaceAll(FIELD, (_, expression: string) => showLine(FIELDS[expression.slice(1)]?.(info) ?? ''));
  if (isTable === undefined) return infos.map((info) => `${fill(info)}\n`).join('');
  const titles = line.replaceAll(FIELD, (_, expression: string) => expression.slice(1).toUpperCase());
  return formatTable(
    titles.split('\t'),
    infos.map((info) => fill(info).split('\t')),
  );
}

function requireField(whole: string, expression: string): void {
  if (expression.startsWith('.') && Object.hasOwn(FIELDS, expression.slice(1))) return;
  const names = Object.keys(FIELDS).map((name) => `.${name}`);
  throw new UsageError(
    `--format knows no ${whole}; its fields are ${names.join(' ')}\n  try: svc ps --format '{{.Name}} {{.Status}}', or -o json`,
  );
}
