import type { Sandbox } from '@svc/sdk';
import type { UploadWatch } from '../../parts/UploadButton.tsx';
import { joinPath } from './guest-path.ts';

/** Large files take their time; a call of the client would give up after a minute or two. */
const UPLOAD_MS = 24 * 60 * 60_000;

/** Sends a file piece by piece. What breaks off leaves the old one, and nothing else. */
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
