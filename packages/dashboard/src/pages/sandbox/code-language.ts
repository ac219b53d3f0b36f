import { javascript } from '@codemirror/lang-javascript';
import { json } from '@codemirror/lang-json';
import { python } from '@codemirror/lang-python';
import { indentUnit } from '@codemirror/language';
import type { Extension } from '@codemirror/state';

export type CodeLanguage = 'python' | 'javascript' | 'json' | 'text';

/** What the editor knows of a language: its colours, and how far a line is indented. */
export function supportOf(language: CodeLanguage): Extension {
  if (language === 'python') return [python(), indentUnit.of('    ')];
  // With what TypeScript and JSX add, all of JavaScript stays what it is.
  if (language === 'javascript') return [javascript({ typescript: true, jsx: true }), indentUnit.of('  ')];
  if (language === 'json') return [json(), indentUnit.of('  ')];
  return [];
}
