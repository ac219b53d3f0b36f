import { randomUUID } from 'node:crypto';
import { readFile, realpath } from 'node:fs/promises';
import { posix, resolve } from 'node:path';
import {
  permissionsForSandboxEntry,
  SandboxConfigurationError,
  SandboxUnsupportedFeatureError,
  type Entry,
  type Manifest,
} from '@openai/agents-core/sandbox';
import { isHostPathWithinRoot, sandboxPathGrantHostPath } from '@openai/agents-core/sandbox/internal';
import type { Sandbox } from '@svc/sdk';
import { uploadTree } from '@svc/sdk/node';
import type { Files } from './files.ts';
import { COPY_FOLDER, GIVE_ROOT, MAKE_GROUP, MAKE_ROOT, MAKE_USER } from './scripts.ts';

type Repository = Extract<Entry, { readonly type: 'git_repo' }>;
const COMMIT = /^[0-9a-f]{7,64}$/;
const ACCOUNT = /^[a-z_][a-z0-9_-]{0,31}$/;
const ROOT = '0';
const CHOWN = 'chown -R -- "$1" "$2"';
const MODE_BITS = 0o7777;

/** Makes what a manifest lists. */
export class Workspace {
  readonly #sandbox: Sandbox;
  readonly #files: Files;

  constructor(sandbox: Sandbox, files: Files) {
    this.#sandbox = sandbox;
    this.#files = files;
  }

  /** Of the user, also where only root can make it. */
  async makeRoot(path: string): Promise<void> {
    const owner = (await this.#files.script(MAKE_ROOT, [path])).text().trim();
    if (owner !== '') await this.#must(GIVE_ROOT, [owner, path], ROOT);
  }

  /** Accounts, then entries, one after the other; with `user` the entries become that user's. */
  async apply(manifest: Manifest, user?: string): Promise<void> {
    requireSupported(manifest);
    for (const { name } of manifest.users) await this.#must(MAKE_USER, accounts(name), ROOT);
    for (const { name, users = [] } of manifest.groups)
      await this.#must(MAKE_GROUP, accounts(name, ...users.map((member) => member.name)), ROOT);
    for (const [path, entry] of Object.entries(manifest.entries)) await this.#put(path, entry, manifest);
    if (user === undefined) return;
    for (const path of Object.keys(manifest.entries))
      await this.#must(CHOWN, [user, this.#files.resolve(path)], ROOT);
  }

  async put(path: string, entry: Entry, manifest: Manifest, user?: string): Promise<void> {
    requireKnown(path, entry);
    await this.#put(path, entry, manifest);
    if (user !== undefined) await this.#must(CHOWN, [user, this.#files.resolve(path)], ROOT);
  }

  async #put(path: string, entry: Entry, manifest: Manifest): Promise<void> {
    const target = this.#files.resolve(path);
    switch (entry.type) {
      case 'dir':
        await this.#sandbox.files.mkdir(target);
        for (const [name, child] of Object.entries(entry.children ?? {}))
          await this.#put(posix.join(path, name), child, manifest);
        break;
      case 'file':
        await this.#files.write(path, entry.content);
        break;
      case 'local_file':
        await this.#files.write(path, await readFile(await localSource(entry.src, manifest)));
        break;
      case 'local_dir':
        await this.#sandbox.files.mkdir(posix.dirname(target));
        await uploadTree(this.#sandbox, await localSource(entry.src, manifest), target);
        break;
      case 'git_repo':
        await this.#clone(entry, target);
        break;
      case 'mount':
      case 's3_mount':
      case 'gcs_mount':
      case 'r2_mount':
      case 'azure_blob_mount':
      case 'box_mount':
      case 's3_files_mount':
        throw unsupported(path, entry.type);
    }
    const { permissions, group } = entry;
    await this.#sandbox.files.chmod(target, permissionsForSandboxEntry(permissions).toMode() & MODE_BITS);
    if (group !== undefined) await this.#must('chgrp -- "$1" "$2"', [group.name, target], ROOT);
  }

  async #clone({ host = 'github.com', repo, ref, subpath = '.' }: Repository, target: string): Promise<void> {
    const url = repo.includes('://') ? repo : `https://${host}/${repo}.git`;
    const folder = `/tmp/svc-git-${randomUUID()}`;
    // A server gives a commit by its hash only with what came before.
    const isCommit = ref !== undefined && COMMIT.test(ref);
    const wanted = ref === undefined || isCommit ? {} : { branch: ref };
    await this.#sandbox.git.clone(url, { path: folder, ...(isCommit ? {} : { depth: 1 }), ...wanted });
    if (isCommit) await this.#sandbox.git.checkout(folder, ref);
    await this.#must(COPY_FOLDER, [folder, subpath, target]);
  }

  /** @param user of the sandbox unless given */
  async #must(script: string, args: readonly string[], user?: string): Promise<void> {
    const done = await this.#files.script(script, args, { user });
    if (done.isSuccess) return;
    const message = `The workspace could not be made: ${args.join(' ')}: ${done.errorText().trim()}`;
    throw new SandboxConfigurationError(message, { exitCode: done.shellCode });
  }
}

/** @throws SandboxConfigurationError for a name that accounts cannot have */
function accounts(...names: readonly string[]): readonly string[] {
  const wrong = names.find((name) => !ACCOUNT.test(name));
  if (wrong === undefined) return names;
  const message = `users, groups: '${wrong}' is no name of an account: use up to 32 small letters, digits, - and _`;
  throw new SandboxConfigurationError(message, { field: 'users' });
}

/** @throws SandboxUnsupportedFeatureError for entries that svc cannot make */
export function requireSupported(manifest: Manifest): void {
  for (const { logicalPath, entry } of manifest.iterEntries()) requireKnown(logicalPath, entry);
}

function requireKnown(path: string, entry: Entry): void {
  if (entry.type === 'mount' || entry.type.endsWith('_mount')) throw unsupported(path, entry.type);
}

function unsupported(path: string, type: string): SandboxUnsupportedFeatureError {
  const message = `entries.${path}: svc has no entries of the type '${type}'. Give a volume with the option 'mounts' of SvcSandboxClient`;
  return new SandboxUnsupportedFeatureError(message, { path, type });
}

/** As in the sandboxes of the SDK: below the current folder, or below what the manifest grants. */
async function localSource(source: string, { extraPathGrants }: Manifest): Promise<string> {
  const path = await realpath(resolve(source));
  const roots = [process.cwd(), ...extraPathGrants.map((grant) => sandboxPathGrantHostPath(grant))];
  for (const root of roots)
    if (isHostPathWithinRoot(await realpath(root).catch(() => resolve(root)), path)) return path;
  const message = `src: ${source} is neither below the current folder nor below an entry of extraPathGrants`;
  throw new SandboxConfigurationError(message, { field: 'src' });
}
