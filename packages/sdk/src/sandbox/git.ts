import { CALL_OPTIONS } from '../client/call-budget.ts';
import { requireKnownOptions, type OptionNames } from '../client/known-options.ts';
import { SvcError } from '../svc-error.ts';
import {
  requireName,
  requireRevision,
  requireText,
  requireUrl,
  type GitAuth,
  type GitOptions,
  type GitProgram,
} from './git-program.ts';
import { BRANCH_FORMAT, readBranches, readStatus, type GitBranch, type GitStatus } from './git-status.ts';

export interface GitCloneOptions extends GitOptions {
  /** The last part of the address unless given, in the working directory. */
  readonly path?: string;
  /** A branch or a tag; the one that the repository names unless given. */
  readonly branch?: string;
  /** So many of the last commits; all of them unless given. */
  readonly depth?: number;
  readonly auth?: GitAuth;
}

export interface GitCommitOptions extends GitOptions {
  /** Who wrote and commits it; what git is set to in the sandbox unless given. */
  readonly author?: { readonly name: string; readonly email: string };
  /** True: also when nothing has changed. */
  readonly allowEmpty?: boolean;
}

export interface GitPushOptions extends GitOptions {
  /** `origin` unless given. */
  readonly remote?: string;
  /** The current one unless given. */
  readonly branch?: string;
  /** True: later pulls of the branch take from here. */
  readonly setUpstream?: boolean;
  readonly auth?: GitAuth;
}

export interface GitPullOptions extends GitOptions {
  /** What the branch was cloned from or pushed to unless given. */
  readonly remote?: string;
  readonly branch?: string;
  /** True: own commits are put after those of the remote. Otherwise a branch that has some of its own is refused. */
  readonly rebase?: boolean;
  readonly auth?: GitAuth;
}

const GIT_OPTIONS: OptionNames<GitOptions> = { ...CALL_OPTIONS, user: true };

/**
 * Repositories in the sandbox, with the git of its image. `path` is a folder of the repository.
 *
 * All throw SvcError `git_missing`, `not_a_repository` and `git_failed`; those that talk to a remote `git_authentication_failed` too.
 */
export class Git {
  readonly #program: GitProgram;

  /** Made by `Sandbox`. */
  constructor(program: GitProgram) {
    this.#program = program;
  }

  /** Resolves to the path of the new repository. An address with credentials in it is refused: give `auth`. */
  async clone(url: string, options: GitCloneOptions = {}): Promise<string> {
    requireKnownOptions(options, { ...GIT_OPTIONS, path: true, branch: true, depth: true, auth: true });
    const { path = folderOf(url), branch, depth, auth } = options;
    const args = [
      '--quiet',
      ...(branch === undefined ? [] : [`--branch=${requireName('branch', branch)}`]),
      ...(depth === undefined ? [] : [`--depth=${requireDepth(depth)}`]),
      '--',
      requireUrl(url),
      requireText('path', path),
    ];
    await this.#program.run('clone', { args, ...(auth === undefined ? {} : { auth }) }, options);
    return (await this.#ask(path, options, 'rev-parse', '--show-toplevel')).trimEnd();
  }

  async status(path: string, options: GitOptions = {}): Promise<GitStatus> {
    requireKnownOptions(options, GIT_OPTIONS);
    return readStatus(await this.#ask(path, options, 'status', '--porcelain=v2', '--branch', '-z'));
  }

  /** Takes all changes into the next commit, or those of `files`: paths as they are, without patterns. */
  async add(path: string, files?: readonly string[], options: GitOptions = {}): Promise<void> {
    requireKnownOptions(options, GIT_OPTIONS);
    const names = (files ?? []).map((file) => requireText('files', file));
    if (files !== undefined && names.length === 0)
      throw new SvcError('invalid_request', 'files is empty: leave it out for all changes', {
        details: { field: 'files' },
      });
    const args = files === undefined ? ['--all'] : ['--all', '--', ...names];
    await this.#program.run('add', { path, settings: ['--literal-pathspecs'], args }, options);
  }

  /** Resolves to the id of the commit. */
  async commit(path: string, message: string, options: GitCommitOptions = {}): Promise<string> {
    requireKnownOptions(options, { ...GIT_OPTIONS, author: true, allowEmpty: true });
    const { author, allowEmpty = false } = options;
    const settings = author === undefined ? [] : identity(author);
    const flags = allowEmpty ? ['--allow-empty'] : [];
    const args = ['--quiet', ...flags, `--message=${requireText('message', message)}`];
    await this.#program.run('commit', { path, settings, args }, options);
    return (await this.#ask(path, options, 'rev-parse', 'HEAD')).trimEnd();
  }

  async push(path: string, options: GitPushOptions = {}): Promise<void> {
    const names = { ...GIT_OPTIONS, remote: true, branch: true, setUpstream: true, auth: true } as const;
    requireKnownOptions(options, names);
    const { remote = 'origin', branch, setUpstream = false, auth } = options;
    const flags = setUpstream ? ['--quiet', '--set-upstream'] : ['--quiet'];
    const what = branch === undefined ? 'HEAD' : `refs/heads/${requireName('branch', branch)}`;
    const args = [...flags, '--', requireName('remote', remote), what];
    await this.#program.run('push', { path, args, ...(auth === undefined ? {} : { auth }) }, options);
  }

  async pull(path: string, options: GitPullOptions = {}): Promise<void> {
    const names = { ...GIT_OPTIONS, remote: true, branch: true, rebase: true, auth: true } as const;
    requireKnownOptions(options, names);
    const { branch, remote = branch === undefined ? undefined : 'origin', rebase = false, auth } = options;
    const args = [
      '--quiet',
      rebase ? '--rebase' : '--ff-only',
      '--',
      ...(remote === undefined ? [] : [requireName('remote', remote)]),
      ...(branch === undefined ? [] : [requireName('branch', branch)]),
    ];
    await this.#program.run('pull', { path, args, ...(auth === undefined ? {} : { auth }) }, options);
  }

  /** Those of the repository itself, by their names. */
  async branches(path: string, options: GitOptions = {}): Promise<readonly GitBranch[]> {
    requireKnownOptions(options, GIT_OPTIONS);
    return readBranches(await this.#ask(path, options, 'for-each-ref', BRANCH_FORMAT, 'refs/heads'));
  }

  /** Makes a branch and does not switch to it. It begins at `from`, a branch or a commit; at the current commit unless given. */
  async createBranch(
    path: string,
    name: string,
    options: GitOptions & { readonly from?: string } = {},
  ): Promise<void> {
    requireKnownOptions(options, { ...GIT_OPTIONS, from: true });
    const from = options.from === undefined ? [] : [requireRevision('from', options.from)];
    await this.#ask(path, options, 'branch', '--quiet', '--', requireName('name', name), ...from);
  }

  /** Switches to a branch, a tag or a commit. One that only a remote has is made first. */
  async checkout(path: string, ref: string, options: GitOptions = {}): Promise<void> {
    requireKnownOptions(options, GIT_OPTIONS);
    await this.#ask(path, options, 'checkout', '--quiet', requireRevision('ref', ref), '--');
  }

  /** One whose commits are in no other is refused, unless `force` is given. */
  async deleteBranch(
    path: string,
    name: string,
    options: GitOptions & { readonly force?: boolean } = {},
  ): Promise<void> {
    requireKnownOptions(options, { ...GIT_OPTIONS, force: true });
    const flag = options.force === true ? '-D' : '-d';
    await this.#ask(path, options, 'branch', '--quiet', flag, '--', requireName('name', name));
  }

  async #ask(path: string, options: GitOptions, command: string, ...args: readonly string[]) {
    return await this.#program.run(command, { path, args }, options);
  }
}

/** As git names the folder of a clone. */
function folderOf(url: string): string {
  const [last = ''] = /[^/:]+$/.exec(url.replace(/\/+$/, '').replace(/\/?\.git$/, '')) ?? [];
  return last;
}

function requireDepth(depth: number): number {
  if (Number.isInteger(depth) && depth > 0) return depth;
  throw new SvcError('invalid_request', 'depth is a whole number from 1 on', { details: { field: 'depth' } });
}

function identity({ name, email }: { readonly name: string; readonly email: string }): readonly string[] {
  const [called, reached] = [requireText('author.name', name), requireText('author.email', email)];
  return ['-c', `user.name=${called}`, '-c', `user.email=${reached}`];
}
