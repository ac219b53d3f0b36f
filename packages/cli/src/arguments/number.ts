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

/** A number of CPUs. */
export function parseCpus(text: string): number {
  if (/^\d*\.\d+$/.test(text) && !Number.isInteger(Number(text)))
    throw new InvalidArgumentError(
      `CPUs are whole: give ${Math.max(1, Math.ceil(Number(text)))}. It is a limit, not a reservation, and those that compete share.`,
    );
  return wholeNumber(1)(text.replace(/\.0+$/, ''));
}

const SECONDS_PER_DAY = 86_400;
const SECONDS_PER_UNIT: Readonly<Record<string, number>> = {
  '': 1,
  s: 1,
  m: 60,
  h: 3600,
  d: SECONDS_PER_DAY,
};

const MAX_DAYS = 36_500;
/** Node's timers count milliseconds in 31 bits, and fire at once for longer times. */
const MAX_TIMER_DAYS = 24;

/** `90`, `90s`, `10m`, `1h`: seconds. */
export function parseSeconds(text: string): number {
  return secondsIn(text, MAX_DAYS);
}

/** The same for a time that this program waits itself. */
export function parseTimeout(text: string): number {
  return secondsIn(text, MAX_TIMER_DAYS);
}

function secondsIn(text: string, maxDays: number): number {
  const match = /^(?<amount>\d+)(?<unit>[smhd]?)$/.exec(text);
  if (match === null) throw new InvalidArgumentError('Give seconds, such as 90, 10m or 1h.');
  const seconds = Number(match.groups?.['amount']) * (SECONDS_PER_UNIT[match.groups?.['unit'] ?? ''] ?? 1);
  if (seconds <= maxDays * SECONDS_PER_DAY) return seconds;
  throw new InvalidArgumentError(`Give at most ${maxDays}d.`);
}
