import type { InterpreterEnd } from './interpreter.ts';

const STATE_LOST = 'its state is lost and a new one takes its place';

/** For code that did not react to being interrupted. */
export const KILLED_NOTE = `[The code did not react to the interruption, so the interpreter was killed; ${STATE_LOST}]\n`;
export const INTERRUPTED_NOTE = '[Interrupted on request; the state is kept]\n';
const LOST_NOTE =
  '[The connection to the interpreter was lost; its state is lost and a new one takes its place]\n';

const SIGNAL_NAMES: Readonly<Record<number, string>> = {
  2: 'SIGINT',
  4: 'SIGILL',
  6: 'SIGABRT',
  7: 'SIGBUS',
  8: 'SIGFPE',
  9: 'SIGKILL',
  11: 'SIGSEGV',
  13: 'SIGPIPE',
  15: 'SIGTERM',
};

/** The note for a caller whose interpreter is gone. */
export function describeEnd(end: InterpreterEnd): string {
  if (end.kind === 'lost') return LOST_NOTE;
  const { reason, code, signal } = end.exit;
  if (reason === 'oom')
    return `[The interpreter was killed because the sandbox ran out of memory; ${STATE_LOST}]\n`;
  if (reason === 'exit') return `[The interpreter exited with code ${code}; ${STATE_LOST}]\n`;
  const name = signal === null ? 'a signal' : (SIGNAL_NAMES[signal] ?? `signal ${signal}`);
  return `[The interpreter was killed by ${name}; ${STATE_LOST}]\n`;
}

export function closedNote(streams: readonly string[]): string {
  return `[The code closed ${streams.join(' and ')} for good, so the interpreter was ended; ${STATE_LOST}]\n`;
}

export function timeoutNote(timeoutMs: number, isStateKept: boolean): string {
  return `[Interrupted after ${timeoutMs / 1000} s${isStateKept ? '; the state is kept' : ''}]\n`;
}
