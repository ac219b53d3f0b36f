import { randomBytes } from 'node:crypto';
import { PlatformError, type ChannelFiles } from '@svc/contract';

/** Maximum number of files per sandbox; the oldest is removed. */
const MAX_FILES = 16;
/** Maximum number of tracked sandboxes; files of others stay until their sandbox is removed. */
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
 * Writes output that is too long for a model into a file of its sandbox, where it can be read by line or as a
 * resource, or searched with a command. It takes disk space of the sandbox instead of memory of the server.
 */
export class KeptOutput {
  /** By namespace and sandbox, oldest first. */
  readonly #paths = new Map<string, string[]>();

  async keep(
    place: Place,
    sandbox: string,
    text: string,
  ): Promise<{ readonly path: string } | { readonly failure: string }> {
    // SAFETY: programs in the sandbox cannot guess the name, and an existing file is not opened, so no symbolic link
    // is followed.
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

  /** @returns the file to remove */
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
    // A partial file is useless, and a full disk needs the space.
    await files.remove(path).catch(() => undefined);
    throw error;
  }
  await files.closeHandle(handle);
}

async function* once(data: Uint8Array): AsyncGenerator<Uint8Array> {
  yield data;
}
