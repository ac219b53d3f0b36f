import type { Patch } from '@svc/contract';
import { ChannelClient, FileFailed, type ChannelFiles } from '@svc/contract/channel';
import { PlatformError } from '@svc/contract/errors';
import { socketTransport } from '@svc/contract/node-socket-transport';
import type { GuestLink } from '../guest/guest-link.ts';
import { copyFromHost, type HostFiles } from './copy-from-host.ts';
import type { EngineRecord } from './record.ts';

/**
 * Applies the spec's patches to the root file system, in order, before the sandbox can be used. svc-init does the work inside, so a symlink
 * of a hostile image leads nowhere but into its own sandbox.
 */
export async function applyPatches(
  hostFiles: HostFiles,
  record: EngineRecord,
  link: GuestLink,
  signal: AbortSignal,
): Promise<void> {
  const session = await link.takeSession(signal);
  const client = await ChannelClient.connect(socketTransport(session.socket), { signal });
  try {
    for (const [index, patch] of (record.spec.patches ?? []).entries()) {
      await applyPatch(client.files, hostFiles, record, patch, signal).catch((error: unknown) => {
        throw refused(index, patch, error);
      });
    }
  } finally {
    client.close();
    link.drop(session);
  }
}

async function applyPatch(
  files: ChannelFiles,
  hostFiles: HostFiles,
  record: EngineRecord,
  patch: Patch,
  signal: AbortSignal,
): Promise<void> {
  switch (patch.type) {
    case 'text':
      return await write(files, patch.path, Buffer.from(patch.content), patch, signal);
    case 'file':
      return await write(files, patch.path, Uint8Array.from(patch.content), patch, signal);
    case 'append': {
      const handle = await files.open(patch.path, { write: true, append: true, create: true }, signal);
      await files.write(handle, 0, chunks(Buffer.from(patch.content)), signal);
      return await files.closeHandle(handle, signal);
    }
    case 'symlink':
      await makeRoom(files, patch.link, patch.replace, signal);
      return await files.symlink(patch.target, patch.link, signal);
    case 'mkdir':
      await files.mkdir(patch.path, {}, signal);
      return await setMode(files, patch.path, patch.mode, signal);
    case 'remove':
      return await remove(files, patch.path, signal);
    case 'copy_file':
    case 'copy_dir':
      await makeRoom(files, patch.dst, patch.replace, signal);
      await copyFromHost(hostFiles, record, patch.src, { files, path: patch.dst }, signal);
      return await setMode(files, patch.dst, patch.type === 'copy_file' ? patch.mode : undefined, signal);
  }
}

async function* chunks(data: Uint8Array): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(data);
}

async function write(
  files: ChannelFiles,
  path: string,
  data: Uint8Array,
  options: { readonly mode?: number | null; readonly replace?: boolean },
  signal: AbortSignal,
): Promise<void> {
  await makeRoom(files, path, options.replace, signal);
  await files.writeFile(path, data, {}, signal);
  await setMode(files, path, options.mode, signal);
}

/** Makes the parent folders; an existing target is removed if it may be replaced, and refused otherwise. */
async function makeRoom(
  files: ChannelFiles,
  path: string,
  replace: boolean | undefined,
  signal: AbortSignal,
): Promise<void> {
  const parent = path.slice(0, path.lastIndexOf('/'));
  if (parent !== '') await files.mkdir(parent, {}, signal);
  if (!(await existsItself(files, path, signal))) return;
  if (replace !== true) throw new Error('it exists already; set replace to true');
  await remove(files, path, signal);
}

async function remove(files: ChannelFiles, path: string, signal: AbortSignal): Promise<void> {
  const entry = await statItself(files, path, signal);
  if (entry === undefined) return;
  if (entry.kind === 'dir') await files.removeDir(path, { recursive: true }, signal);
  else await files.remove(path, signal);
}

async function existsItself(files: ChannelFiles, path: string, signal: AbortSignal): Promise<boolean> {
  return (await statItself(files, path, signal)) !== undefined;
}

async function statItself(files: ChannelFiles, path: string, signal: AbortSignal) {
  try {
    return await files.stat(path, { followSymlink: false }, signal);
  } catch (error) {
    if (error instanceof FileFailed && (error.errnoName === 'ENOENT' || error.errnoName === 'ENOTDIR'))
      return undefined;
    throw error;
  }
}

async function setMode(
  files: ChannelFiles,
  path: string,
  mode: number | null | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (mode !== null && mode !== undefined) await files.setStat(path, { mode }, {}, signal);
}

function refused(index: number, patch: Patch, error: unknown): PlatformError {
  if (PlatformError.is(error)) return error;
  const reason = error instanceof Error ? error.message : String(error);
  const field = `patches[${index}]`;
  const message = `${field} (${patch.type}) could not be applied: ${reason}`;
  return new PlatformError('invalid_sandbox_config', message, { details: { field, reason }, cause: error });
}
