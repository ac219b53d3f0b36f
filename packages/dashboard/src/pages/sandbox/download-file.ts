import type { Sandbox } from '@svc/sdk';
import { saveFile } from '../../parts/save-file.ts';

/** Saves a file of the sandbox as the browser does. */
export async function downloadFile(sandbox: Sandbox, path: string): Promise<void> {
  const chunks: BlobPart[] = [];
  for await (const chunk of sandbox.files.readStream(path)) chunks.push(new Uint8Array(chunk));
  saveFile(path.slice(path.lastIndexOf('/') + 1), chunks);
}
