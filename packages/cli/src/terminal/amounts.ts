const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** `1536` → `1.5 KiB` */
export function formatBytes(bytes: number): string {
  let amount = bytes;
  let unit = 0;
  while (amount >= 1024 && unit < UNITS.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  return `${unit === 0 || amount >= 100 ? Math.round(amount) : amount.toFixed(1)} ${UNITS[unit]}`;
}

/** Of one CPU: `12.5%`. */
export function formatPercent(percent: number): string {
  return `${percent.toFixed(1)}%`;
}

const SECONDS_PER_UNIT = { d: 86_400, h: 3600, m: 60 } as const;

/** How long something may take, as options take it, in the largest unit that divides it: `90s`, `10m`, `2d`. */
export function formatDuration(seconds: number): string {
  const found = Object.entries(SECONDS_PER_UNIT).find(([, unit]) => seconds > 0 && seconds % unit === 0);
  return found === undefined ? `${seconds}s` : `${seconds / found[1]}${found[0]}`;
}

/** How long ago, in the largest unit that fits: `42s`, `5m`, `3h`, `2d`. */
export function formatAge(since: string | null, now: number): string {
  if (since === null) return '-';
  const seconds = Math.max(0, Math.floor((now - Date.parse(since)) / 1000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}
