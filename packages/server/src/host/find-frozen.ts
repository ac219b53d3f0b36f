import { findEngine, readProcessState } from '@svc/engine/client';
import { findServer, findWeb } from './pid-file.ts';

/** A process that was stopped by a signal (SIGSTOP): it does not answer until it is continued or replaced. */
export interface FrozenProcess {
  readonly process: 'supervisor' | 'web-facing process' | 'engine';
  readonly pid: number;
  /** A running supervisor replaces it within seconds. */
  readonly isReplaced: boolean;
}

/** The frozen processes of the server and the engine with this data folder. */
export async function findFrozen(dataFolder: string): Promise<readonly FrozenProcess[]> {
  const supervisor = await findServer(dataFolder);
  const isReplaced = supervisor !== undefined && !isStopped(supervisor);
  const found = [
    ['supervisor', supervisor],
    ['web-facing process', await findWeb(dataFolder)],
    ['engine', (await findEngine(dataFolder))?.pid],
  ] as const;
  return found.flatMap(([process, pid]) =>
    pid === undefined || !isStopped(pid) ? [] : [{ process, pid, isReplaced }],
  );
}

/** A message for people: which process is frozen, and what to do about it. */
export function describeFrozen({ process, pid, isReplaced }: FrozenProcess): string {
  const what = `the ${process} (pid ${pid}) was stopped by a signal`;
  if (isReplaced) return `${what}; its supervisor replaces it within seconds`;
  const effect = process === 'supervisor' ? 'replaces nothing that ends' : 'answers nothing';
  return `${what} and ${effect}; continue it with: kill -CONT ${pid}`;
}

function isStopped(pid: number): boolean {
  return readProcessState(pid)?.state === 'T';
}
