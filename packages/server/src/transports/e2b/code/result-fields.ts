import { TABLE_TYPE, type CodeRunResult } from '@svc/contract';

/** The names of E2B for forms of a result, by MIME type. Others are left out: clients fail on what they do not know. */
const FIELD_OF_TYPE: Readonly<Record<string, string>> = {
  'text/html': 'html',
  'text/markdown': 'markdown',
  'image/svg+xml': 'svg',
  'image/png': 'png',
  'image/jpeg': 'jpeg',
  'application/pdf': 'pdf',
  'text/latex': 'latex',
  'application/json': 'json',
  'application/javascript': 'javascript',
  'application/vnd.svc.chart+json': 'chart',
};
const PLAIN = 'text/plain';

interface Table {
  readonly columns: readonly { readonly name: string }[];
  readonly rows: readonly (readonly unknown[])[];
}

/** @param shown the text of a last value, which it may not have itself */
export function toResultLine({ data, is_main_result: isMain }: CodeRunResult, shown: string | null): object {
  const forms = Object.entries(data).flatMap(([type, value]) => {
    const field = FIELD_OF_TYPE[type];
    return field === undefined ? [] : [[field, value] as const];
  });
  const [plain, table] = [data[PLAIN] ?? shown, data[TABLE_TYPE]];
  return {
    type: 'result',
    is_main_result: isMain,
    ...(typeof plain === 'string' ? { text: withoutQuotes(plain) } : {}),
    ...Object.fromEntries(forms),
    // The interpreter makes tables of this shape.
    ...(table === undefined ? {} : { data: toColumns(table as Table) }),
    extra: {},
  };
}

function toColumns({ columns, rows }: Table): Readonly<Record<string, readonly unknown[]>> {
  return Object.fromEntries(columns.map(({ name }, index) => [name, rows.map((row) => row[index])]));
}

function withoutQuotes(text: string): string {
  return /^(['"])[^]*\1$/.test(text) && text.length > 1 ? text.slice(1, -1) : text;
}
