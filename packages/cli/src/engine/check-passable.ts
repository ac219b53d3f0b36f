import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { UsageError } from '../usage-error.ts';

const OTHERS_MAY_PASS = 0o001;

/** Root of a sandbox is an ordinary user of this host, who must be able to pass every folder above its own files. */
export async function checkPassable(folder: string): Promise<void> {
  const { mode } = await stat(folder);
  if ((mode & OTHERS_MAY_PASS) === 0)
    throw new UsageError(
      `sandboxes cannot pass through ${folder}\n  try: chmod o+x ${folder}, or another --path`,
    );
  if (folder !== '/') await checkPassable(dirname(folder));
}
