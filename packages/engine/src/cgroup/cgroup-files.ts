/** The value of `key` in a file of "key value" lines (memory.stat, cpu.stat, memory.events, memory.oom_control). */
export function valueOf(text: string, key: string): number | undefined {
  const at = text.startsWith(`${key} `) ? 0 : text.indexOf(`\n${key} `) + 1;
  if (at === 0 && !text.startsWith(`${key} `)) return undefined;
  return wholeNumber(text.slice(at + key.length + 1, endOfLine(text, at)));
}

/** A file that holds one number. */
export function singleNumber(text: string): number | undefined {
  return wholeNumber(text.trim());
}

/** A limit in bytes; null when there is none. */
export function limitBytes(text: string): number | null {
  const value = singleNumber(text);
  return value === undefined || value >= NO_LIMIT ? null : value;
}

/** cgroup.procs: a process id per line; 0 stands for a process outside our pid namespace. */
export function processIds(text: string): number[] {
  return text
    .split('\n')
    .map(Number)
    .filter((pid) => pid > 0);
}

/** Version 1 writes "no limit" as the largest multiple of the page size; no machine has this much memory. */
const NO_LIMIT = 2 ** 62;

function wholeNumber(text: string): number | undefined {
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf('\n', from);
  return end === -1 ? text.length : end;
}
