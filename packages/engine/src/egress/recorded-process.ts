import { readFile, rm, writeFile } from 'node:fs/promises';

interface Recorded {
  readonly pid: number;
  /** Start time in ticks since boot; distinguishes it from a later process with the same pid. */
  readonly startTime: string;
  /** Its listening ports. */
  readonly port: number;
}

/** Records a child in a file, for a later process that has to end it. */
export async function recordProcess(path: string, pid: number | undefined, port: number): Promise<void> {
  const startTime = pid === undefined ? null : await readStartTime(pid);
  if (pid === undefined || startTime === null) throw new Error('The process to record is already gone');
  const record: Recorded = { pid, startTime, port };
  await writeFile(path, JSON.stringify(record), { mode: 0o600 });
}

/** The recorded process; null when it has ended. */
export async function findRecordedProcess(path: string): Promise<Recorded | null> {
  const record = await readRecord(path);
  // SAFETY: pid and start time together name one process of this boot, and only the engine writes this file.
  return record !== null && (await readStartTime(record.pid)) === record.startTime ? record : null;
}

/** Ends the recorded process if it is still the same one, and deletes the record. */
export async function endRecordedProcess(path: string): Promise<void> {
  const record = await findRecordedProcess(path);
  if (record !== null) process.kill(record.pid, 'SIGKILL');
  await rm(path, { force: true });
}

async function readRecord(path: string): Promise<Recorded | null> {
  try {
    const value: unknown = JSON.parse(await readFile(path, 'utf8'));
    return isRecorded(value) ? value : null;
  } catch {
    // Absent, or truncated by a crash: there is no record.
    return null;
  }
}

function isRecorded(value: unknown): value is Recorded {
  if (typeof value !== 'object' || value === null) return false;
  if (!('pid' in value) || !('startTime' in value) || !('port' in value)) return false;
  const isPid = Number.isInteger(value.pid) && Number(value.pid) > 1;
  return isPid && typeof value.startTime === 'string' && Number.isInteger(value.port);
}

async function readStartTime(pid: number): Promise<string | null> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may hold spaces; field 22 is the 20th behind it.
    const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' ? null : (fields[18] ?? null);
  } catch {
    return null;
  }
}
