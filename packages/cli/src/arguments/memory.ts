import { InvalidArgumentError } from 'commander';

const MIB_PER_UNIT: Readonly<Record<string, number>> = { '': 1, m: 1, g: 1024, t: 1024 * 1024 };

/** `512`, `512M`, `1.5G`: mebibytes. */
export function parseMib(text: string): number {
  const match = /^(?<amount>\d+(?:\.\d+)?)(?<unit>[mgt]?)(?:i?b)?$/i.exec(text);
  const { amount = '', unit = '' } = match?.groups ?? {};
  const mib = Number(amount) * (MIB_PER_UNIT[unit.toLowerCase()] ?? Number.NaN);
  if (match === null || !Number.isInteger(mib) || mib < 1)
    throw new InvalidArgumentError('Give whole mebibytes, such as 512, 512M or 2G.');
  return mib;
}
