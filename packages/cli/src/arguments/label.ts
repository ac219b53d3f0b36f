import { InvalidArgumentError } from 'commander';

export type Labels = Readonly<Record<string, string>>;

/** `KEY=VALUE`, or `KEY` for one without a value; repeatable, a later one wins. */
export function collectLabel(text: string, earlier: Labels = {}): Labels {
  const [, key, value = ''] = /^([^=]+)(?:=(.*))?$/s.exec(text) ?? [];
  if (key === undefined) throw new InvalidArgumentError('Give KEY=VALUE.');
  return { ...earlier, [key]: value };
}
