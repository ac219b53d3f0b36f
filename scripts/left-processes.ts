import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** The variable that marks the processes of a test file, which their children inherit. */
export const MARK = 'SVC_TEST_FILE';
/** Time for processes to notice that their parent is gone, and for the cleanup after a dead test. Its own test sets less. */
const GRACE_MS = Number(process.env['SVC_TEST_GRACE_MS'] ?? 5_000);
const TIDY_MS = 90_000;
const LOOK_EVERY_MS = 100;

interface Left {
  readonly pid: number;
  readonly command: string;
}

/** Kills the processes that a test file left running. Returns what they were. */
export async function endLeftProcesses(mark: string): Promise<readonly string[]> {
  const wardens = find(mark).filter(isWarden);
  const until = performance.now() + (wardens.length > 0 ? TIDY_MS : GRACE_MS);
  let left = find(mark);
  while (left.length > 0 && performance.now() < until) {
    await delay(LOOK_EVERY_MS);
    left = find(mark);
  }
  // SAFETY: the mark of these processes is random and belongs to this run of this file.
  for (const { pid } of left) kill(pid);
  return [...wardens, ...left.filter((process) => !isWarden(process))].map(({ command }) => command);
}

/** test/engine/warden.ts: it still runs at this point only when a test did not end what it had started. */
function isWarden({ command }: Left): boolean {
  return command.includes('end-engine.ts');
}

function find(mark: string): Left[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => {
    try {
      // Empty for a zombie.
      if (!readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`${MARK}=${mark}`)) return [];
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
      return command === '' ? [] : [{ pid: Number(pid), command }];
    } catch {
      // It has ended meanwhile, or belongs to another user.
      return [];
    }
  });
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}
