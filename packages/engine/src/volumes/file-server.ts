import { PlatformError } from '@svc/contract/errors';
import type { ChannelFiles } from '@svc/contract/channel';
import { openConfinedFolder } from './confined-folder.ts';
import type { ConfinedFolder } from './confined-folder.ts';
import { Mutex } from '@svc/contract/async';
import type { VolumeMount } from './volume-mount.ts';

/** How long a stop waits for what is under way. */
const DRAIN_MS = 3000;

export interface FileServerOptions {
  readonly program: string;
  readonly mount: VolumeMount;
  readonly idleMs: number;
  /** Called with every fresh process before anyone else uses it. */
  readonly prepare: (files: ChannelFiles) => Promise<void>;
}

/** The right to use the files of a volume until it is given back. */
export interface FileAccess {
  readonly files: ChannelFiles;
  release(): void;
}

/**
 * A process that sees nothing but one volume and carries out file operations in it. It starts with the first use, ends when
 * it was idle for a while, and is started again when it died. While it runs the volume is mounted.
 */
export class FileServer {
  readonly #options: FileServerOptions;
  readonly #changes = new Mutex();
  #running: ConfinedFolder | undefined;
  #uses = 0;
  #idleTimer: NodeJS.Timeout | undefined;
  #unused: (() => void) | undefined;

  constructor(options: FileServerOptions) {
    this.#options = options;
  }

  async acquire(): Promise<FileAccess> {
    return await this.#changes.run(async () => {
      clearTimeout(this.#idleTimer);
      const { files } = this.#running ?? (await this.#start());
      this.#uses += 1;
      let isHeld = true;
      const release = (): void => {
        if (isHeld) this.#release();
        isHeld = false;
      };
      return { files, release };
    });
  }

  /** Ends the process after the calls under way, or after a timeout; new calls wait meanwhile. */
  async stop(): Promise<void> {
    await this.#changes.run(async () => {
      await this.#drain();
      await this.#end();
    });
  }

  #release(): void {
    this.#uses -= 1;
    if (this.#uses > 0) return;
    this.#unused?.();
    clearTimeout(this.#idleTimer);
    this.#idleTimer = setTimeout(() => void this.#stopUnused(), this.#options.idleMs);
    this.#idleTimer.unref();
  }

  async #drain(): Promise<void> {
    if (this.#uses === 0 || this.#running === undefined) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#unused = resolve;
    const timer = setTimeout(resolve, DRAIN_MS);
    await promise;
    clearTimeout(timer);
    this.#unused = undefined;
  }

  async #stopUnused(): Promise<void> {
    await this.#changes.run(async () => {
      if (this.#uses === 0) await this.#end();
    });
  }

  async #start(): Promise<ConfinedFolder> {
    const { mount, program, prepare } = this.#options;
    const root = await mount.acquire();
    let running: ConfinedFolder | undefined;
    try {
      running = await openConfinedFolder(program, root);
      await prepare(running.files);
    } catch (error) {
      running?.close();
      await running?.gone;
      mount.release();
      throw new PlatformError('unavailable', 'The files of the volume cannot be served now; try again', {
        cause: error,
      });
    }
    const started = running;
    this.#running = started;
    void started.closed.then(() => {
      if (this.#running === started) this.#running = undefined;
    });
    // Its mount namespace holds the volume: only when it is gone can the volume be unmounted for good.
    void started.gone.then(() => mount.release());
    return started;
  }

  async #end(): Promise<void> {
    clearTimeout(this.#idleTimer);
    const running = this.#running;
    this.#running = undefined;
    running?.close();
    await running?.gone;
  }
}
