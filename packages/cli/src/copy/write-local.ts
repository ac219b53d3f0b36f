import { once } from 'node:events';
import { open } from 'node:fs/promises';

const PERMISSIONS = 0o777;

/** Makes or replaces a file of this machine, which the user named. */
export async function writeLocal(
  path: string,
  mode: number,
  content: AsyncIterable<Uint8Array>,
): Promise<void> {
  // SAFETY: set-user-id bits of a sandbox mean nothing good here.
  const file = await open(path, 'w', mode & PERMISSIONS);
  try {
    await file.writeFile(content);
    await file.chmod(mode & PERMISSIONS);
  } finally {
    await file.close();
  }
}

/** As fast as our reader takes it. */
export async function writeStdout(content: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const chunk of content)
    if (!process.stdout.write(Buffer.from(chunk))) await once(process.stdout, 'drain');
}
