import { join } from 'node:path';
import { DEFAULT_LOG_LEVEL, LOG_LEVELS, type LogLevel } from '@svc/contract/spec';
import { SandboxLog } from '../logs/sandbox-log.ts';

/** Writes svc's own messages about a sandbox to its log, as lines of the source `system`, filtered by the level of the spec. */
export class Journal {
  readonly #folder: string;
  readonly #level: () => LogLevel | null | undefined;
  #log: SandboxLog | undefined;

  /** `folder`: of the sandbox's record. `level`: asked anew for each line, because a sandbox that waited in the pool gets its spec later. */
  constructor(folder: string, level: () => LogLevel | null | undefined) {
    this.#folder = folder;
    this.#level = level;
  }

  async open(): Promise<SandboxLog> {
    this.#log ??= await SandboxLog.open(join(this.#folder, 'logs'));
    return this.#log;
  }

  /** Does nothing while the log is not open. */
  note(level: LogLevel, text: string): void {
    const wanted = this.#level() ?? DEFAULT_LOG_LEVEL;
    if (LOG_LEVELS.indexOf(level) <= LOG_LEVELS.indexOf(wanted)) this.#log?.system(text);
  }

  close(): void {
    this.#log?.close();
  }
}
