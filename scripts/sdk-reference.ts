import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const ENTRY_POINTS = [
  { entry: '@svc/sdk', file: join(import.meta.dirname, '../packages/sdk/src/index.ts') },
  { entry: '@svc/sdk/node', file: join(import.meta.dirname, '../packages/sdk/src/node.ts') },
];

/**
 * docs/reference/sdk.md from the doc comments of the SDK's exports. It relies on the layout of the formatter: declarations begin
 * in the first column, members are indented by two.
 */
export function renderSdkReference(): string {
  const sections = ENTRY_POINTS.flatMap(({ entry, file }) => [
    `## \`${entry}\``,
    '',
    ...exportsOf(file).flatMap(({ name, file: source }) => renderDeclaration(name, source)),
  ]);
  return [
    '# SDK',
    '',
    'Generated from `packages/sdk/src` by `make generate`. `packages/sdk/README.md` shows how it is used.',
    '',
    ...sections,
  ].join('\n');
}

function exportsOf(entry: string): readonly { readonly name: string; readonly file: string }[] {
  const statements = readFileSync(entry, 'utf8').matchAll(/^export (?:type )?\{([^}]+)\} from '([^']+)';$/gm);
  return [...statements].flatMap(([, names = '', from = '']) =>
    names
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '')
      .map((name) => ({ name, file: join(dirname(entry), from) })),
  );
}

function renderDeclaration(name: string, file: string): readonly string[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  const start = lines.findIndex((line) => isDeclaration(line, name));
  if (start < 0) throw new Error(`${file} does not declare ${name}`);
  const kind = /^export (?:async )?(\w+)/.exec(lines[start] ?? '')?.[1] ?? '';
  const members = ['class', 'interface', 'const'].includes(kind) ? membersOf(lines, start) : [];
  const declaration = kind === 'type' ? typeAt(lines, start) : declarationAt(lines, start);
  const signature = kind === 'function' || kind === 'type' ? ['```ts', declaration, '```', ''] : [];
  return [`### ${kind} \`${name}\``, '', ...paragraph(commentAbove(lines, start)), ...signature, ...members];
}

function isDeclaration(line: string, name: string): boolean {
  return new RegExp(`^export (async )?(class|interface|type|const|function) ${name}\\b`).test(line);
}

/** The members up to the closing brace in the first column, private ones left out. */
function membersOf(lines: readonly string[], start: number): readonly string[] {
  const rendered: string[] = [];
  for (let index = start + 1; index < lines.length && !(lines[index] ?? '').startsWith('}'); index++) {
    const line = lines[index] ?? '';
    const isMember = /^ {2}(?:readonly |static |async |get |\*)*[\w]+[?<(:*]/.test(line);
    if (!isMember || /^ {2}(private|constructor)/.test(line)) continue;
    const comment = commentAbove(lines, index).join(' ');
    rendered.push(`- \`${declarationAt(lines, index)}\`${comment === '' ? '' : `: ${comment}`}`);
  }
  return rendered.length === 0 ? [] : [...rendered, ''];
}

/** The signature: up to the body, the value or the end, on one line. */
function declarationAt(lines: readonly string[], start: number): string {
  const indent = /^ */.exec(lines[start] ?? '')?.[0] ?? '';
  let text = '';
  for (const line of lines.slice(start)) {
    text += ` ${line.trim()}`;
    const isEnd =
      line.endsWith(';') ||
      (line.endsWith('{') && line.startsWith(`${indent}}`)) ||
      /\) ?(:.*)? \{$/.test(line);
    if (isEnd || (text.trim() === line.trim() && line.endsWith('{'))) break;
  }
  return text
    .trim()
    .replace(/^export /, '')
    .replace(/^(static )?async /, '$1')
    .replace(/^(?!type )(.*) = \S.*;$/, '$1')
    .replace(/[;{]$/, '')
    .replaceAll('( ', '(')
    .replaceAll(/, \)/g, ')')
    .trim();
}

/** The source of a declaration up to the next blank line, without the comments inside. */
function typeAt(lines: readonly string[], start: number): string {
  return lines
    .slice(start, lines.indexOf('', start))
    .filter((line) => !/^ *\/?\*/.test(line))
    .join('\n')
    .replace(/^export /, '')
    .replace(/;$/, '');
}

function commentAbove(lines: readonly string[], index: number): readonly string[] {
  const end = (lines[index - 1] ?? '').trim();
  if (!end.endsWith('*/')) return [];
  const block: string[] = [];
  for (let at = index - 1; at >= 0; at--) {
    const line = (lines[at] ?? '').trim();
    block.unshift(
      line
        .replace(/^\/\*\* ?/, '')
        .replace(/ ?\*\/$/, '')
        .replace(/^\* ?/, ''),
    );
    if (line.startsWith('/**')) break;
  }
  return block.filter((line) => line !== '');
}

function paragraph(comment: readonly string[]): readonly string[] {
  return comment.length === 0 ? [] : [...comment, ''];
}
