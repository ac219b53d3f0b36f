import type { RestInput, RestOperations } from '@svc/contract/rest';
import { E2bRefusal } from '../wire/e2b-failure.ts';

type Choice = Pick<RestInput<RestOperations['code.stream']>['body'], 'language' | 'kernel'>;

/** What E2B's names of languages stand for: our interpreters, or a Jupyter kernel of the image. */
const CHOICES: Readonly<Record<string, Choice>> = {
  python: { language: 'python' },
  javascript: { language: 'javascript' },
  js: { language: 'javascript' },
  r: { kernel: 'ir' },
  java: { kernel: 'java' },
  bash: { kernel: 'bash' },
};
const DEFAULT_LANGUAGE = 'python';
const TYPESCRIPT = new Set(['typescript', 'ts']);
/** Listed as contexts of their own, because E2B has them from the beginning. */
const DEFAULT_CONTEXTS = ['python', 'javascript'] as const;
const DEFAULT_PREFIX = 'default-';

export function choiceOf(language: string | null): Choice {
  const name = (language ?? DEFAULT_LANGUAGE).toLowerCase();
  const choice = CHOICES[name];
  if (choice !== undefined) return choice;
  const remedy = TYPESCRIPT.has(name)
    ? 'there is no interpreter for it; send JavaScript'
    : `one of ${Object.keys(CHOICES).join(', ')} is taken`;
  throw new E2bRefusal(400, `Language ${name} is not offered: ${remedy}`);
}

/** The language of a default context; undefined: the id is of another context. */
export function languageOfDefault(contextId: string): string | undefined {
  return DEFAULT_CONTEXTS.find((language) => `${DEFAULT_PREFIX}${language}` === contextId);
}

export function defaultContexts(cwd: string): readonly object[] {
  return DEFAULT_CONTEXTS.map((language) => ({ id: `${DEFAULT_PREFIX}${language}`, language, cwd }));
}
