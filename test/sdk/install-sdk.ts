import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const ROOT = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

/** The oldest Node that the SDK supports. */
export const NODE_22: string = join(ROOT, 'test/clients/node_modules/.bin/node');

/** What `npm install` of the package would leave in a project, without asking a registry. */
export async function installSdk(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-sdk-user-'));
  const sdk = join(folder, 'node_modules/@svc/sdk');
  await mkdir(join(folder, 'node_modules/@svc'), { recursive: true });
  await run(process.execPath, [join(ROOT, 'scripts/build-sdk.ts'), sdk]);
  const { dependencies } = JSON.parse(await readFile(join(sdk, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  for (const name of Object.keys(dependencies))
    await symlink(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name));
  return folder;
}
