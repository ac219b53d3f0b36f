import { InvalidArgumentError } from 'commander';

export interface EnvVar {
  readonly key: string;
  /** Null: the value of the local environment. */
  readonly value: string | null;
}

/** `KEY=VALUE`, or `KEY` for its local value; repeatable, a later one wins. */
export function collectEnvVar(text: string, earlier: readonly EnvVar[] = []): readonly EnvVar[] {
  const at = text.indexOf('=');
  const key = at === -1 ? text : text.slice(0, at);
  if (key === '') throw new InvalidArgumentError('Give KEY=VALUE, or KEY for the value that it has here.');
  const value = at === -1 ? null : text.slice(at + 1);
  return [...earlier.filter((variable) => variable.key !== key), { key, value }];
}

/** The variables with their values. Variables that are not set locally are left out, as with docker. */
export function toEnv(
  variables: readonly EnvVar[] = [],
  readVariable: (name: string) => string | undefined,
): Record<string, string> {
  const entries = variables.flatMap(({ key, value }) => {
    const given = value ?? readVariable(key);
    return given === undefined ? [] : [[key, given] as const];
  });
  return Object.fromEntries(entries);
}
