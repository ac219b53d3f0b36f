export type LogSource = 'stdout' | 'stderr' | 'output' | 'system';

export interface LogEntry {
  readonly time: string;
  readonly source: LogSource;
  readonly text: string;
  /** The process that wrote it; null for system entries. */
  readonly process: string | null;
  /** Opaque cursor; pass it back to continue after this entry. */
  readonly cursor: string;
}

export interface ReadLogs {
  readonly sources?: readonly LogSource[];
  readonly cursor?: string;
  readonly tail?: number;
  readonly follow?: boolean;
}
