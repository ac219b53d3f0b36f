import { InvalidArgumentError } from 'commander';

export interface EnvVar {
  readonly key: string;
  /** Null: the one that the variable has here. */
  readonly value: string | null;
}

/** `KEY=VALUE`, or `KEY` for the value that it has here; given any number of times, a later one wins. */
export function collectEnvVar(text: string, earlier: readonly EnvVar[] = []): readonly EnvVar[] {
  const at = text.indexOf('=');
  const key = at === -1 ? text : text.slice(0, at);
  if (key === '') throw new InvalidArgumentError('Give KEY=VALUE, or KEY for the value that it has here.');
  const value = at === -1 ? null : text.slice(at + 1);
  return [...earlier.filter((variable) => variable.key !== key), { key, value }];
}

/** The variables with their values. What is not set here is not set there, as with docker. */
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
