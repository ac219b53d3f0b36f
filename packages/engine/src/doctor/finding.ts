/**
 * - `ok`: as it should be.
 * - `warn`: sandboxes run, but isolation, speed or a version could be better.
 * - `missing`: sandboxes need it, and this host does not have it.
 * - `absent`: an optional feature that this host does not have.
 */
export type Status = 'ok' | 'warn' | 'missing' | 'absent';

export type Group = 'runtimes' | 'kernel' | 'programs' | 'space';

/** The result of one check. */
export interface Finding {
  readonly group: Group;
  readonly name: string;
  readonly status: Status;
  /** What was found. */
  readonly finding: string;
  /** The remedy; null when none is needed. */
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
