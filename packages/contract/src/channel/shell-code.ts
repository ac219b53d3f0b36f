const SIGNAL_BASE = 128;
const SIGKILL = 9;

/** The exit code as a shell gives it: that of the process, or 128 + n when signal n ended it; SIGKILL where none is known. */
export function shellCodeOf({
  code,
  signal,
}: {
  readonly code: number;
  readonly signal: number | null;
}): number {
  if (signal !== null) return SIGNAL_BASE + signal;
  return code < 0 ? SIGNAL_BASE + SIGKILL : code;
}
