import { SvcError } from '../svc-error.ts';

export type GitChange =
  | 'unmodified'
  | 'modified'
  | 'type_changed'
  | 'added'
  | 'deleted'
  | 'renamed'
  | 'copied'
  | 'unmerged'
  | 'untracked';

export interface GitFileStatus {
  /** Relative to the top of the repository; one of a folder ends with a slash. */
  readonly path: string;
  /** Of what is renamed or copied: the path before. */
  readonly renamedFrom: string | null;
  /** What the next commit changes. */
  readonly index: GitChange;
  /** What is changed beyond that. */
  readonly workTree: GitChange;
}

export interface GitStatus {
  /** Null: the head is detached. */
  readonly branch: string | null;
  /** Null before the first commit. */
  readonly commit: string | null;
  /** Such as `origin/main`. */
  readonly upstream: string | null;
  /** Commits that the upstream does not have; null without one. */
  readonly ahead: number | null;
  /** Commits that only the upstream has; null without one. */
  readonly behind: number | null;
  /** What differs from the commit, untracked files too. */
  readonly files: readonly GitFileStatus[];
  readonly isClean: boolean;
}

export interface GitBranch {
  readonly name: string;
  readonly commit: string;
  readonly upstream: string | null;
  readonly isCurrent: boolean;
}

const CHANGES: Readonly<Record<string, GitChange>> = {
  '.': 'unmodified',
  M: 'modified',
  T: 'type_changed',
  A: 'added',
  D: 'deleted',
  R: 'renamed',
  C: 'copied',
  U: 'unmerged',
  '?': 'untracked',
};
/** Fields before the path, by the kind of a line. */
const FIELDS: Readonly<Record<string, number>> = { '1': 8, '2': 9, u: 10, '?': 1 };

/** Reads `git status --porcelain=v2 --branch -z`. */
export function readStatus(output: string): GitStatus {
  const entries = output.split('\0').values();
  const heads = new Map<string, string>();
  const files: GitFileStatus[] = [];
  for (const entry of entries) {
    const [kind = '', ...rest] = entry.split(' ');
    if (kind === '#') heads.set(rest[0] ?? '', rest.slice(1).join(' '));
    const fields = FIELDS[kind];
    if (fields === undefined) continue;
    // A renamed one has the path before as an entry of its own.
    const renamedFrom = kind === '2' ? (entries.next().value ?? null) : null;
    const [index = '.', workTree = '.'] = kind === '?' ? '??' : (rest[0] ?? '');
    const path = rest.slice(fields - 1).join(' ');
    files.push({ path, renamedFrom, index: changeOf(index), workTree: changeOf(workTree) });
  }
  const [, ahead, behind] = /^\+(\d+) -(\d+)$/.exec(heads.get('branch.ab') ?? '') ?? [];
  return {
    branch: unless('(detached)', heads.get('branch.head')),
    commit: unless('(initial)', heads.get('branch.oid')),
    upstream: heads.get('branch.upstream') ?? null,
    ahead: ahead === undefined ? null : Number(ahead),
    behind: behind === undefined ? null : Number(behind),
    files,
    isClean: files.length === 0,
  };
}

function changeOf(letter: string): GitChange {
  const change = CHANGES[letter];
  if (change !== undefined) return change;
  throw new SvcError('git_failed', `git status gave a letter that is not known: ${letter}`);
}

function unless(none: string, value: string | undefined): string | null {
  return value === undefined || value === none ? null : value;
}

export const BRANCH_FORMAT = '--format=%(refname:lstrip=2)%00%(objectname)%00%(upstream:short)%00%(HEAD)';

/** Reads `git for-each-ref` with `BRANCH_FORMAT`. */
export function readBranches(output: string): readonly GitBranch[] {
  return output
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [name = '', commit = '', upstream = '', head = ''] = line.split('\0');
      return { name, commit, upstream: upstream === '' ? null : upstream, isCurrent: head === '*' };
    });
}
