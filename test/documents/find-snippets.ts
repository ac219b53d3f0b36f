import { readSources } from '../source-files.ts';

/** A fenced block of a document, and what the comment above it says about it. */
export interface Snippet {
  /** File and line, to be found by. */
  readonly place: string;
  readonly path: string;
  readonly language: string;
  readonly text: string;
  /** `run` or `shown`; null: there is no comment. */
  readonly mark: { readonly kind: string; readonly reason: string } | null;
}

const MARK = /^<!-- (?<kind>run|shown): (?<reason>.+) -->$/;

/** All blocks that a reader might copy: of the README, of the guides, of the packages. */
export function findSnippets(): readonly Snippet[] {
  return readSources(
    'README.md',
    'docs/*.md',
    'docs/{guides,operating,internals,performance}/*.md',
    'packages/*/README.md',
  ).flatMap(({ path, text }) => snippetsOf(path, text));
}

function snippetsOf(path: string, text: string): readonly Snippet[] {
  const lines = text.split('\n');
  const found: Snippet[] = [];
  for (let line = 0; line < lines.length; line++) {
    const fence = /^```(?<language>\w*)$/.exec(lines[line] ?? '');
    if (fence === null) continue;
    const end = lines.indexOf('```', line + 1);
    const { kind, reason } = MARK.exec(lines[line - 1] ?? '')?.groups ?? {};
    found.push({
      place: `${path}:${line + 1}`,
      path,
      language: fence.groups?.['language'] ?? '',
      text: lines.slice(line + 1, end).join('\n'),
      mark: kind === undefined || reason === undefined ? null : { kind, reason },
    });
    line = end;
  }
  return found;
}
