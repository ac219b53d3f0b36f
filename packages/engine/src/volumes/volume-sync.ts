import { runTool } from '../host/run-tool.ts';

/**
 * Makes everything written to a file system so far survive a crash of the host. Callers that arrive while a run is under
 * way share the next one, since that run may have begun before their writes.
 */
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
    // Its failure is told to those who waited for it.
    await this.#current?.catch(() => undefined);
    this.#current = this.#next;
    this.#next = undefined;
    await runTool('sync', ['--file-system', this.#mountPoint]);
  }
}
