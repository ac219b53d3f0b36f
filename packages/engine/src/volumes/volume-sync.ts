import { runTool } from '../host/run-tool.ts';

/** Flushes a file system. Callers that arrive during a flush share the next one, because the current one may have begun before their writes. */
export class VolumeSync {
  readonly #mountPoint: string;
  #current: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(mountPoint: string) {
    this.#mountPoint = mountPoint;
  }

  async run(): Promise<void> {
    this.#next ??= this.#runAfterCurrent();
    await this.#next;
  }

  async #runAfterCurrent(): Promise<void> {
    // Its own callers get its failure.
    await this.#current?.catch(() => undefined);
    this.#current = this.#next;
    this.#next = undefined;
    await runTool('sync', ['--file-system', this.#mountPoint]);
  }
}
