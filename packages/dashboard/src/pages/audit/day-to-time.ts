const DAY = /^\d{4}-\d{2}-\d{2}$/;

/** The begin or end of a day in the viewer's time zone, as UTC; undefined: not a day. */
export function dayToTime(day: string | null, edge: 'start' | 'end'): string | undefined {
  if (day === null || !DAY.test(day)) return undefined;
  const time = new Date(`${day}T${edge === 'start' ? '00:00:00.000' : '23:59:59.999'}`);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}
