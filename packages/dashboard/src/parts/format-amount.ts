const STEP = 1024;
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** `1.5 GiB` */
export function formatBytes(bytes: number): string {
  let unit = 0;
  let amount = bytes;
  while (amount >= STEP && unit < UNITS.length - 1) {
    amount /= STEP;
    unit += 1;
  }
  return `${amount < 10 && unit > 0 ? amount.toFixed(1).replace(/\.0$/, '') : Math.round(amount)} ${UNITS[unit]}`;
}

export function formatMib(mib: number): string {
  return formatBytes(mib * STEP * STEP);
}

/** `$12.30` */
export function formatCents(cents: number): string {
  return new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD' }).format(cents / 100);
}

/** Two significant digits, also for small amounts. */
export function formatScale(amount: number): string {
  return new Intl.NumberFormat('en-US', { maximumSignificantDigits: 2 }).format(amount);
}

/** `0.5 vCPU-hours`: with the unit as the server names it, for one. */
export function formatQuantity(quantity: number, unit: string): string {
  return `${formatNumber(quantity)} ${unit}${quantity === 1 ? '' : 's'}`;
}

/** At most two decimal places. */
export function formatNumber(amount: number): string {
  return new Intl.NumberFormat('en-US', { maximumFractionDigits: 2 }).format(amount);
}
