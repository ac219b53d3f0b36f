const TERMINAL = 1;
const SESSION_START = 2;
const SHUTDOWN = 4;

/** Flags of each type that has any; all others have none. */
const FLAGS: ReadonlyMap<string, number> = new Map([
  ['core.pong', TERMINAL],
  ['core.touched', TERMINAL],
  ['core.error', TERMINAL],
  ['core.exec.exited', TERMINAL],
  ['core.exec.failed', TERMINAL],
  ['core.fs.response', TERMINAL],
  ['core.tcp.closed', TERMINAL],
  ['core.tcp.failed', TERMINAL],
  ['core.exec.request', SESSION_START],
  ['core.fs.request', SESSION_START],
  ['core.tcp.connect', SESSION_START],
  ['core.shutdown', SHUTDOWN],
  ['svc.configured', TERMINAL],
  ['svc.killed.answer', TERMINAL],
  ['svc.failed.answer', TERMINAL],
  ['svc.process.started', TERMINAL],
  ['svc.process.failed', TERMINAL],
  ['svc.process.attached', TERMINAL],
  ['svc.udp.open', SESSION_START],
  ['svc.udp.failed', TERMINAL],
  ['svc.detached.start', SESSION_START],
  ['svc.detached.started', TERMINAL],
  ['svc.detached.failed', TERMINAL],
  ['svc.detached.listed', TERMINAL],
  ['svc.detached.end', TERMINAL],
  ['svc.detached.done', TERMINAL],
  ['svc.detached.recalled', TERMINAL],
  ['svc.watch.start', SESSION_START],
  ['svc.watch.end', TERMINAL],
  ['svc.watch.failed', TERMINAL],
]);

export function flagsOf(type: string): number {
  return FLAGS.get(type) ?? 0;
}

/** The last frame of its id. */
export function isTerminal(flags: number): boolean {
  return (flags & TERMINAL) !== 0;
}
