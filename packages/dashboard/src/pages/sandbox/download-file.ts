import type { Sandbox } from '@svc/sdk';

const REVOKE_MS = 60_000;

/** Saves a file of the sandbox as the browser does. SAFETY: as bytes without a type, so that no page is opened in our name. */
export async function downloadFile(sandbox: Sandbox, path: string): Promise<void> {
  const chunks: BlobPart[] = [];
  for await (const chunk of sandbox.files.readStream(path)) chunks.push(new Uint8Array(chunk));
  const url = URL.createObjectURL(new Blob(chunks, { type: 'application/octet-stream' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = path.slice(path.lastIndexOf('/') + 1);
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), REVOKE_MS);
}
