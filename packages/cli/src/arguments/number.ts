import { InvalidArgumentError } from 'commander';

/** A whole number of at least `minimum`. */
export function wholeNumber(minimum: number): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (!/^\d+$/.test(text) || !Number.isSafeInteger(number) || number < minimum)
      throw new InvalidArgumentError(`Give a whole number of at least ${minimum}.`);
    return number;
  };
}

const SECONDS_PER_UNIT: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3600, d: 86_400 };

/** `90`, `90s`, `10m`, `1h`: seconds. */
export function parseSeconds(text: string): number {
  const match = /^(?<amount>\d+)(?<unit>[smhd]?)$/.exec(text);
  if (match === null) throw new InvalidArgumentError('Give seconds, such as 90, 10m or 1h.');
  return Number(match.groups?.['amount']) * (SECONDS_PER_UNIT[match.groups?.['unit'] ?? ''] ?? 1);
}
