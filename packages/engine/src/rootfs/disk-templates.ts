import { chmod, mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { HostCalls } from '../host/host-calls.ts';
import { formatDisk } from './format-disk.ts';

/** Disks of further sizes are formatted individually (15 ms): callers choose sizes and must not fill our disk with templates. */
const MAX_TEMPLATES = 64;

/**
 * Empty disks to copy, one per size: a copy takes 0.2 ms, formatting 15. A template is a sparse file of some 200 KiB with the folders `u`
 * (upper, with the mount points every sandbox needs) and `w` (work), both owned by root.
 */
export class DiskTemplates {
  readonly #folder: string;
  readonly #content: string;
  readonly #hostCalls: HostCalls;
  /** Finished or in progress, so that each size is formatted once. */
  readonly #templates = new Map<number, Promise<string>>();

  constructor(folder: string, hostCalls: HostCalls) {
    this.#folder = folder;
    this.#content = join(folder, 'content');
    this.#hostCalls = hostCalls;
  }

  /** Removes existing templates: those of an earlier process may be incomplete, or of an older format. */
  async recover(): Promise<void> {
    this.#templates.clear();
    await rm(this.#folder, { recursive: true, force: true });
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    for (const name of ['w', 'u', 'u/.svc', 'u/proc', 'u/sys', 'u/dev']) {
      await mkdir(join(this.#content, name), { recursive: true });
      // Set explicitly because of the umask: these are the modes of `/` and of the mount points in the sandbox.
      await chmod(join(this.#content, name), 0o755);
    }
  }

  async prepare(sizeMib: number): Promise<void> {
    await this.#template(sizeMib);
  }

  /** Makes the new file `disk` with space for `sizeMib` of files. */
  async createDisk(sizeMib: number, disk: string): Promise<void> {
    if (this.#templates.has(sizeMib) || this.#templates.size < MAX_TEMPLATES) {
      await this.#hostCalls.copySparse(await this.#template(sizeMib), disk);
    } else {
      await formatDisk(disk, this.#content, sizeMib);
    }
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#templates.values());
  }

  async #template(sizeMib: number): Promise<string> {
    let template = this.#templates.get(sizeMib);
    if (template === undefined) {
      template = this.#format(sizeMib);
      this.#templates.set(sizeMib, template);
    }
    try {
      return await template;
    } catch (error) {
      this.#templates.delete(sizeMib);
      throw error;
    }
  }

  async #format(sizeMib: number): Promise<string> {
    const template = join(this.#folder, `${sizeMib}.img`);
    const unfinished = `${template}.new`;
    await formatDisk(unfinished, this.#content, sizeMib);
    await rename(unfinished, template);
    return template;
  }
}
