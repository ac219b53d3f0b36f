/** `team=web, stage=test` as an object; undefined while there is no complete label. */
export function readLabels(text: string): Readonly<Record<string, string>> | undefined {
  const pairs = text
    .split(',')
    .map((part) => /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(part))
    .flatMap((match) => (match === null ? [] : [[match[1] ?? '', match[2] ?? ''] as const]));
  return pairs.length === 0 ? undefined : Object.fromEntries(pairs);
}
