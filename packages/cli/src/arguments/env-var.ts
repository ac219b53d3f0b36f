import { InvalidArgumentError } from 'commander';

export interface EnvVar {
  readonly key: string;
  readonly value: string;
}

/** `KEY=VALUE`, given any number of times; a later one wins. */
export function collectEnvVar(text: string, earlier: readonly EnvVar[] = []): readonly EnvVar[] {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('Give KEY=VALUE.');
  const key = text.slice(0, at);
  return [...earlier.filter((variable) => variable.key !== key), { key, value: text.slice(at + 1) }];
}
