const LEVELS: Readonly<Record<number, string>> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  40: 'warn',
  50: 'error',
  60: 'fatal',
};
const SILENT = new Set(['level', 'time', 'msg', 'pid', 'hostname']);

/** Formats a line of the engine's JSON log for people; any other line stays as it is. */
export function formatLogLine(line: string): string {
  const entry = parse(line);
  if (entry === undefined) return line;
  const level = LEVELS[Number(entry['level'])] ?? String(entry['level']);
  const time =
    typeof entry['time'] === 'number' ? new Date(entry['time']).toISOString() : String(entry['time']);
  const fields = Object.entries(entry)
    .filter(([key]) => !SILENT.has(key))
    .map(([key, value]) => `${key}=${formatValue(value)}`);
  const message = typeof entry['msg'] === 'string' ? entry['msg'] : '';
  return [time, level.padEnd(5), message, ...fields].join(' ').trimEnd();
}

/** The message of an error; its stack stays in the log file. */
function formatValue(value: unknown): string {
  if (typeof value === 'string') return value;
  const isError = typeof value === 'object' && value !== null && 'stack' in value && 'message' in value;
  return JSON.stringify(isError ? value.message : value);
}

function parse(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null && 'level' in value ? { ...value } : undefined;
  } catch {
    // Not JSON: for instance a message of the kernel or of Node itself.
    return undefined;
  }
}
