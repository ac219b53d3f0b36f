import { randomBytes } from 'node:crypto';
import { PlatformError, type ChannelFiles } from '@svc/contract';

/** Of one sandbox; the oldest goes when there are more. */
const MAX_FILES = 16;
/** Sandboxes whose files are remembered; those of others stay until their sandbox is removed. */
const MAX_SANDBOXES = 10_000;
const FOLDER = '/tmp';
const READABLE = 0o644;

interface Place {
  readonly namespace: string;
  files<T>(
    sandbox: string,
    path: string,
    work: (files: ChannelFiles, path: string) => Promise<T>,
  ): Promise<T>;
}

/**
 * Puts output that is too long to be shown into a file of the sandbox that it came from: whoever wants it reads it there, by
 * line or as a resource, or searches it with a command, and it counts against the disk of the sandbox instead of the memory of the
 * server.
 */
export class KeptOutput {
  /** By namespace and sandbox, the oldest first. */
  readonly #paths = new Map<string, string[]>();

  async keep(
    place: Place,
    sandbox: string,
    text: string,
  ): Promise<{ readonly path: string } | { readonly failure: string }> {
    // SAFETY: nobody in the sandbox can guess the name, and a file that is there is not opened, so no link leads elsewhere.
    const path = `${FOLDER}/svc-output-${randomBytes(8).toString('hex')}.txt`;
    const old = this.#remember(`${place.namespace}/${sandbox}`, path);
    try {
      await place.files(sandbox, path, async (files) => {
        if (old !== undefined) await files.remove(old).catch(() => undefined);
        await files.mkdir(FOLDER);
        await writeNew(files, path, Buffer.from(text));
      });
      return { path };
    } catch (error) {
      if (!PlatformError.is(error)) throw error;
      return { failure: error.message };
    }
  }

  /** @returns the file that has to go */
  #remember(key: string, path: string): string | undefined {
    const paths = this.#paths.get(key) ?? [];
    this.#paths.delete(key);
    this.#paths.set(key, paths);
    paths.push(path);
    const [first] = this.#paths.keys();
    if (this.#paths.size > MAX_SANDBOXES && first !== undefined) this.#paths.delete(first);
    return paths.length > MAX_FILES ? paths.shift() : undefined;
  }
}

async function writeNew(files: ChannelFiles, path: string, content: Uint8Array): Promise<void> {
  const handle = await files.open(path, { write: true, createNew: true, mode: READABLE });
  try {
    await files.write(handle, 0, once(content));
  } catch (error) {
    files.release(handle);
    // Half of it is of no use, and a full disk needs the room.
    await files.remove(path).catch(() => undefined);
    throw error;
  }
  await files.closeHandle(handle);
}

async function* once(data: Uint8Array): AsyncGenerator<Uint8Array> {
  yield data;
}
