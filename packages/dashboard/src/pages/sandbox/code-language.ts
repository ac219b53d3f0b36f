import { javascript } from '@codemirror/lang-javascript';
import { json } from '@codemirror/lang-json';
import { python } from '@codemirror/lang-python';
import { indentUnit } from '@codemirror/language';
import type { Extension } from '@codemirror/state';

export type CodeLanguage = 'python' | 'javascript' | 'json' | 'text';

/** Language support of the editor: highlighting and indentation. */
export function supportOf(language: CodeLanguage): Extension {
  if (language === 'python') return [python(), indentUnit.of('    ')];
  // TypeScript and JSX are supersets of JavaScript.
  if (language === 'javascript') return [javascript({ typescript: true, jsx: true }), indentUnit.of('  ')];
  if (language === 'json') return [json(), indentUnit.of('  ')];
  return [];
}
