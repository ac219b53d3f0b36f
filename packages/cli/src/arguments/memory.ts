import { InvalidArgumentError } from 'commander';

const MIB_PER_UNIT: Readonly<Record<string, number>> = { '': 1, m: 1, g: 1024, t: 1024 * 1024 };
const MIB_PER_GIB = 1024;

/** `10`, `10G`, `1T`: gibibytes. */
export function parseGib(text: string): number {
  const gib = /^\d+$/.test(text) ? Number(text) : mibIn(text) / MIB_PER_GIB;
  if (!Number.isSafeInteger(gib) || gib < 1)
    throw new InvalidArgumentError('Give whole gibibytes, such as 10, 10G or 1T.');
  return gib;
}

/** `512`, `512M`, `1.5G`: mebibytes. */
export function parseMib(text: string): number {
  const mib = mibIn(text);
  if (!Number.isInteger(mib) || mib < 1)
    throw new InvalidArgumentError('Give whole mebibytes, such as 512, 512M or 2G.');
  return mib;
}

/** Not a number when the text is no size. */
function mibIn(text: string): number {
  const match = /^(?<amount>\d+(?:\.\d+)?)(?<unit>[mgt]?)(?:i?b)?$/i.exec(text);
  const { amount = '', unit = '' } = match?.groups ?? {};
  return match === null ? Number.NaN : Number(amount) * (MIB_PER_UNIT[unit.toLowerCase()] ?? Number.NaN);
}
