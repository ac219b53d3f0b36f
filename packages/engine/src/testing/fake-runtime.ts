import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { PlatformError } from '@svc/contract/errors';
import { FakeGuest } from './fake-guest.ts';
import type { Runtime, RuntimeProbe, RuntimeSpec, Started } from '../runtime/runtime.ts';

/**
 * A runtime without isolation, root or child processes, for tests of code above the port. It keeps the port's promises, and its
 * PID 1 is a few lines that speak svc-init's protocol as far as starting and stopping go.
 * Fakes of one folder share their sandboxes, so a second one stands for a later process of the engine.
 */
export class FakeRuntime implements Runtime {
  readonly name = 'fake';
  readonly isolation = 'container';
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
    mkdirSync(folder, { recursive: true });
  }

  async probe(): Promise<RuntimeProbe> {
    return { usable: true, reason: 'fake 1.0: no isolation at all', version: '1.0', released: null };
  }

  async start(spec: RuntimeSpec, signal: AbortSignal): Promise<Started> {
    mkdirSync(this.#path(spec.handle));
    try {
      signal.throwIfAborted();
      const sources = [spec.rootfs, ...spec.mounts.flatMap(({ source }) => source ?? [])];
      if (!sources.every((path) => existsSync(path))) {
        const reason = 'a file system of the sandbox is missing';
        throw new PlatformError('start_failed', `fake could not start the sandbox: ${reason}`, {
          details: { runtime: this.name, reason },
        });
      }
      guests.set(this.#path(spec.handle), new FakeGuest(spec));
      return { rlimits: spec.rlimits };
    } catch (error) {
      await this.remove(spec.handle);
      throw error;
    }
  }

  async rest(): Promise<void> {}

  async wake(): Promise<void> {}

  async isAlive(handle: string): Promise<boolean> {
    return guests.get(this.#path(handle))?.isAlive ?? false;
  }

  async kill(handle: string): Promise<void> {
    guests.get(this.#path(handle))?.end();
  }

  async remove(handle: string): Promise<void> {
    await this.kill(handle);
    guests.delete(this.#path(handle));
    await rm(this.#path(handle), { recursive: true, force: true });
  }

  async list(): Promise<readonly string[]> {
    return readdirSync(this.#folder);
  }

  #path(handle: string): string {
    return join(this.#folder, handle);
  }
}

/** By the sandbox's folder. They outlive the fake that started them, as real sandboxes do. */
const guests = new Map<string, FakeGuest>();
