import { once } from 'node:events';
import { open } from 'node:fs/promises';

const PERMISSIONS = 0o777;

/** Creates or replaces a local file that the user named. */
export async function writeLocal(
  path: string,
  mode: number,
  content: AsyncIterable<Uint8Array>,
): Promise<void> {
  // SAFETY: set-user-id bits of a sandbox are never applied to local files.
  const file = await open(path, 'w', mode & PERMISSIONS);
  try {
    await file.writeFile(content);
    await file.chmod(mode & PERMISSIONS);
  } finally {
    await file.close();
  }
}

/** Writes to stdout with back-pressure. */
export async function writeStdout(content: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const chunk of content)
    if (!process.stdout.write(Buffer.from(chunk))) await once(process.stdout, 'drain');
}
