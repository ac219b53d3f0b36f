import { SvcError, type Sandbox } from '@svc/sdk';
import type { UploadWatch } from '../../parts/UploadButton.tsx';
import { joinPath } from './guest-path.ts';

/** Large files take their time; a call of the client would give up after a minute or two. */
const UPLOAD_MS = 24 * 60 * 60_000;
/** A server that is being started again is back by then. */
const REMOVE_TRIES = 15;
const PAUSE_MS = 1000;

/**
 * Sends a file piece by piece, beside its place, and puts it there when it is whole: what breaks off leaves the old one. The mode of
 * one that is replaced stays.
 */
export async function uploadFile(
  sandbox: Sandbox,
  folder: string,
  file: File,
  watch: UploadWatch,
): Promise<void> {
  const { signal } = watch;
  const path = joinPath(folder, file.name);
  const partial = joinPath(folder, `.svc-upload-${randomName()}`);
  const mode = await modeOf(sandbox, path, signal);
  try {
    const options = { signal, timeoutMs: UPLOAD_MS, ...(mode === undefined ? {} : { mode }) };
    await sandbox.files.write(partial, counted(file, watch), options);
    await sandbox.files.rename(partial, path, { signal });
  } catch (error) {
    await removePartial(sandbox, partial);
    throw error;
  }
}

async function modeOf(sandbox: Sandbox, path: string, signal: AbortSignal): Promise<number | undefined> {
  try {
    return (await sandbox.files.stat(path, { signal })).mode & 0o7777;
  } catch (error) {
    if (SvcError.is(error, 'not_found')) return undefined;
    throw error;
  }
}

function counted(file: File, { onSent }: UploadWatch): ReadableStream<Uint8Array> {
  let sentBytes = 0;
  const counter = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      sentBytes += chunk.length;
      onSent(sentBytes);
      controller.enqueue(chunk);
    },
  });
  return file.stream().pipeThrough(counter);
}

/** What broke the upload off may keep this off for a while too. */
async function removePartial(sandbox: Sandbox, path: string): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await sandbox.files.remove(path);
    } catch (error) {
      // Never made, or the sandbox with all its files is away.
      const isPassing = SvcError.is(error, 'connection_failed') || SvcError.is(error, 'unavailable');
      if (!isPassing || tries >= REMOVE_TRIES) return;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}

/** `randomUUID` is for pages that came over TLS alone. */
function randomName(): string {
  return [...crypto.getRandomValues(new Uint8Array(8))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('');
}
