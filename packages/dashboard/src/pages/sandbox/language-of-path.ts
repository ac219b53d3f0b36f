import type { CodeLanguage } from './code-language.ts';

const ENDINGS = new Map<string, CodeLanguage>([
  ['py', 'python'],
  ['pyi', 'python'],
  ['js', 'javascript'],
  ['cjs', 'javascript'],
  ['mjs', 'javascript'],
  ['jsx', 'javascript'],
  ['ts', 'javascript'],
  ['cts', 'javascript'],
  ['mts', 'javascript'],
  ['tsx', 'javascript'],
  ['json', 'json'],
]);

/** The language of a file, by the extension of its name. */
export function languageOfPath(path: string): CodeLanguage {
  const [, ending = ''] = /\.(\w+)$/.exec(path) ?? [];
  return ENDINGS.get(ending.toLowerCase()) ?? 'text';
}
