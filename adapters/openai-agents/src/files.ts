import { posix } from 'node:path';
import {
  SandboxWorkspaceError,
  SandboxWorkspaceReadNotFoundError,
  WorkspacePathPolicy,
  type Manifest,
  type SandboxDirectoryEntry,
} from '@openai/agents-core/sandbox';
import { SvcError, type ExecResult, type Sandbox } from '@svc/sdk';
import { ABSENT, FORBIDDEN, IS_DIRECTORY, LIST, READ, REMOVE, WRITE } from './scripts.ts';

const MOST_FILE_BYTES = 64 * 1024 * 1024;

interface Call {
  readonly user?: string | undefined;
  readonly stdin?: string | Uint8Array;
  readonly maxOutputBytes?: number;
}

/**
 * Files of the workspace, read and written by a user with the rights of that user.
 * @throws SandboxInvalidManifestPathError for a path that neither the workspace nor a path grant has
 */
export class Files {
  readonly #sandbox: Sandbox;
  readonly #manifest: () => Manifest;

  constructor(sandbox: Sandbox, manifest: () => Manifest) {
    this.#sandbox = sandbox;
    this.#manifest = manifest;
  }

  resolve(path: string | undefined, forWrite = false): string {
    const { root, extraPathGrants } = this.#manifest();
    return new WorkspacePathPolicy({ root, extraPathGrants }).resolve(path, { forWrite }).path;
  }

  async read(path: string, user?: string, maxBytes = MOST_FILE_BYTES): Promise<Uint8Array> {
    const read = await this.script(READ, [this.resolve(path)], { user, maxOutputBytes: maxBytes });
    if (read.truncated.length > 0 && maxBytes >= MOST_FILE_BYTES) throw tooLarge(path);
    return requireDone(read, path).stdout;
  }

  async write(path: string, content: string | Uint8Array, user?: string): Promise<void> {
    requireDone(await this.script(WRITE, [this.resolve(path, true)], { user, stdin: content }), path);
  }

  async remove(path: string, user?: string): Promise<void> {
    requireDone(await this.script(REMOVE, [this.resolve(path, true)], { user }), path);
  }

  async list(path: string, user?: string): Promise<SandboxDirectoryEntry[]> {
    const listed = requireDone(await this.script(LIST, [this.resolve(path)], { user }), path);
    const words = listed.text().split('\0').slice(0, -1);
    const entries: SandboxDirectoryEntry[] = [];
    for (let index = 0; index < words.length; index += 2) {
      const [kind, name = ''] = words.slice(index, index + 2);
      const type = kind === 'dir' || kind === 'file' ? kind : 'other';
      entries.push({ name, path: posix.join(path, name), type });
    }
    return entries.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** @param test of the program `test`: `-e`, or `-d` say */
  async is(test: '-d' | '-e' | '-x', path: string, user?: string): Promise<boolean> {
    return (await this.script('[ "$1" "$2" ]', [test, this.resolve(path)], { user })).isSuccess;
  }

  async script(text: string, args: readonly string[], call: Call = {}): Promise<ExecResult> {
    const { user, stdin, maxOutputBytes } = call;
    return await this.#sandbox.exec('/bin/sh', ['-c', text, 'sh', ...args], {
      ...(user === undefined ? {} : { user }),
      ...(stdin === undefined ? {} : { stdin }),
      ...(maxOutputBytes === undefined ? {} : { maxOutputBytes }),
    });
  }
}

function requireDone(ended: ExecResult, path: string): ExecResult {
  // A reader of the beginning of a file ends what writes the rest.
  if (ended.isSuccess || ended.truncated.length > 0) return ended;
  const details = { path };
  if (ended.code === ABSENT) throw new SandboxWorkspaceReadNotFoundError(`File not found: ${path}`, details);
  if (ended.code === IS_DIRECTORY)
    throw new SandboxWorkspaceError(`Path is not a file: ${path}`, 'workspace_write_type_error', details);
  const said = ended.code === FORBIDDEN ? 'permission denied' : ended.errorText().trim();
  throw new SandboxWorkspaceError(`${path}: ${said}`, 'workspace_archive_write_error', details);
}

function tooLarge(path: string): SvcError {
  const message = `${path} has more than ${MOST_FILE_BYTES} bytes: give maxBytes, or read a part with a command`;
  return new SvcError('payload_too_large', message, { details: { path } });
}
