import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { TestEngine } from './start-engine.ts';

/**
 * What the warden of a test's engine runs: ends every process on its data folder, and removes its sandboxes, mounts and folders.
 * `node end-engine.ts FOLDER ENGINE-ARGUMENT…`
 */
const ROUNDS = 5;
const [folder = '', ...args] = process.argv.slice(2);
if (existsSync(folder)) {
  // More than once: a supervisor restarts its child until both are killed.
  for (let round = 0; round < ROUNDS; round++) processesOn(folder).forEach(kill);
  await TestEngine.destroyOrphaned(folder, args);
}

/** SAFETY: the name of the folder was made up by mkdtemp, so every process that has it as an argument belongs to it. */
function processesOn(wanted: string): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => pid !== process.pid && argumentsOf(pid).includes(wanted));
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}

function argumentsOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    // It has ended meanwhile.
    return [];
  }
}
