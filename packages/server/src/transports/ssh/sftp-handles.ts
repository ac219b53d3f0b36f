import { FileFailed } from '@svc/contract/channel';

type Kind = 'file' | 'directory';

interface Open {
  readonly kind: Kind;
  /** The handle inside the sandbox. */
  readonly handle: number;
  /** Operations in progress on the handle. */
  readonly uses: Set<Promise<unknown>>;
}

const MAX_HANDLES = 256;

/** The open files and directories of one SFTP session. */
export class SftpHandles {
  readonly maximum = MAX_HANDLES;
  readonly #open = new Map<string, Open>();
  readonly #closeHandle: (handle: number) => Promise<void>;
  #made = 0;
  #opening = 0;

  constructor(closeHandle: (handle: number) => Promise<void>) {
    this.#closeHandle = closeHandle;
  }

  async open(kind: Kind, open: () => Promise<number>): Promise<Buffer> {
    if (this.#open.size + this.#opening >= MAX_HANDLES) throw new FileFailed('too many open files', 'EMFILE');
    this.#opening += 1;
    try {
      const handle = await open();
      this.#made += 1;
      const name = String(this.#made);
      this.#open.set(name, { kind, handle, uses: new Set() });
      return Buffer.from(name);
    } finally {
      this.#opening -= 1;
    }
  }

  async use<T>(name: Buffer, kind: Kind, work: (handle: number) => Promise<T>): Promise<T> {
    const open = this.#require(name);
    if (open.kind !== kind) throw new FileFailed(`this handle is of a ${open.kind}`, 'EBADF');
    const result = work(open.handle);
    const use = result.catch(() => undefined);
    open.uses.add(use);
    try {
      return await result;
    } finally {
      open.uses.delete(use);
    }
  }

  /** Closes a handle after all operations that were requested before. */
  async close(name: Buffer): Promise<void> {
    const open = this.#require(name);
    this.#open.delete(name.toString('latin1'));
    await Promise.all(open.uses);
    await this.#closeHandle(open.handle);
  }

  #require(name: Buffer): Open {
    const open = this.#open.get(name.toString('latin1'));
    if (open === undefined) throw new FileFailed('there is no such handle', 'EBADF');
    return open;
  }
}
