import { readFile, stat } from 'node:fs/promises';
import type { CliConfig } from '../config.ts';
import { UsageError } from '../usage-error.ts';

const OTHERS = 0o077;

/** The key that a context refers to. Its text goes to the server and nowhere else. @throws UsageError */
export async function readKey(
  ref: string,
  { readVariable }: Pick<CliConfig, 'readVariable'>,
): Promise<string> {
  if (ref.startsWith('env:')) {
    const name = ref.slice('env:'.length);
    const value = readVariable(name);
    if (value === undefined)
      throw new UsageError(
        `the key of this context is in ${name}, which is not set\n  try: export ${name}=KEY`,
      );
    return value.trim();
  }
  const path = ref.replace(/^file:/, '');
  const { mode } = await stat(path).catch(() => {
    throw new UsageError(
      `the key of this context is in ${path}, which cannot be read\n  try: svc context add NAME --key-stdin`,
    );
  });
  if ((mode & OTHERS) !== 0)
    throw new UsageError(`others can read the key in ${path}\n  try: chmod 600 ${path}`);
  return (await readFile(path, 'utf8')).trim();
}
