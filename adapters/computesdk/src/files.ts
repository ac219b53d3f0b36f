import type { FileEntry } from '@computesdk/provider';
import type { FileInfo, Sandbox } from '@svc/sdk';

/** Files by their absolute paths. */
export const files = {
  readFile: async (sandbox: Sandbox, path: string): Promise<string> => await sandbox.files.readText(path),

  /** Makes the folders above it. */
  writeFile: async (sandbox: Sandbox, path: string, content: string): Promise<void> => {
    const parent = path.slice(0, path.lastIndexOf('/'));
    if (parent !== '') await sandbox.files.mkdir(parent);
    await sandbox.files.write(path, content);
  },

  mkdir: async (sandbox: Sandbox, path: string): Promise<void> => await sandbox.files.mkdir(path),

  readdir: async (sandbox: Sandbox, path: string): Promise<FileEntry[]> =>
    (await sandbox.files.list(path)).map(toEntry),

  exists: async (sandbox: Sandbox, path: string): Promise<boolean> => await sandbox.files.exists(path),

  remove: async (sandbox: Sandbox, path: string): Promise<void> =>
    await sandbox.files.remove(path, { recursive: true }),
};

function toEntry({ name, kind, sizeBytes, modifiedAt }: FileInfo): FileEntry {
  const type = kind === 'directory' ? 'directory' : 'file';
  return { name, type, size: sizeBytes, ...(modifiedAt === null ? {} : { modified: modifiedAt }) };
}
