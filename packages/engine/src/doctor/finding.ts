/**
 * - `ok`: as it should be.
 * - `warn`: sandboxes run, but something is weaker, slower or older than it could be.
 * - `missing`: something that sandboxes need.
 * - `absent`: something optional that this host does not have.
 */
export type Status = 'ok' | 'warn' | 'missing' | 'absent';

export type Group = 'runtimes' | 'kernel' | 'programs' | 'space';

/** One thing that was looked at. */
export interface Finding {
  readonly group: Group;
  readonly name: string;
  readonly status: Status;
  /** What is there. */
  readonly finding: string;
  /** What to do about it; null when there is nothing to do. */
  readonly remedy: string | null;
}

export interface HostReport {
  readonly findings: readonly Finding[];
  /** Isolation classes that sandboxes can have here, strongest first. */
  readonly classes: readonly string[];
  readonly canRunSandboxes: boolean;
}

/** Makes the findings of one group. */
export function findingsOf(group: Group) {
  return (name: string, status: Status, finding: string, remedy: string | null = null): Finding => ({
    group,
    name,
    status,
    finding,
    remedy,
  });
}
