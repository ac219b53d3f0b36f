import type { Sandbox } from '@svc/sdk';
import type { UploadWatch } from '../../parts/UploadButton.tsx';
import { joinPath } from './guest-path.ts';

/** A day, because the default time limit of the client is too short for large files. */
const UPLOAD_MS = 24 * 60 * 60_000;

/** Streams a file to the sandbox. A failed upload leaves the old file unchanged. */
export async function uploadFile(
  sandbox: Sandbox,
  folder: string,
  file: File,
  { signal, onSent }: UploadWatch,
): Promise<void> {
  let sentBytes = 0;
  const counter = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      sentBytes += chunk.length;
      onSent(sentBytes);
      controller.enqueue(chunk);
    },
  });
  const content = file.stream().pipeThrough(counter);
  const options = { signal, timeoutMs: UPLOAD_MS, atomic: true };
  await sandbox.files.write(joinPath(folder, file.name), content, options);
}
