import { lstat, mkdir, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { Command } from 'commander';
import { COMPLETION_SCRIPTS } from '../completion/scripts.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';

interface InstallOptions {
  readonly prefix: string;
  readonly remove?: boolean;
}

/** The script at the root of this checkout. */
const OWN_SVC = resolve(import.meta.dirname, '../../../../svc');

export function createCommand(): Command {
  return new Command('install')
    .description(
      'Puts svc on PATH, as a link to this checkout, and the completion of bash, zsh and fish where they look for it.\n' +
        'May be repeated; --remove takes all of it away again.',
    )
    .option('--prefix <dir>', 'folder that has bin and share', '/usr/local')
    .option('--remove', 'take away what an earlier install has put there')
    .addHelpText(
      'after',
      examples(
        ['sudo ./svc install', 'for everybody'],
        ['./svc install --prefix ~/.local', 'for oneself, where ~/.local/bin is on PATH'],
        ['sudo svc install --remove', 'and away again'],
      ),
    )
    .action(install);
}

async function install({ prefix, remove }: InstallOptions, command: Command): Promise<void> {
  const { isJson } = readGlobals(command);
  // SAFETY: the folder that the user names, with the user's own rights; below it only names of ours.
  const link = join(resolve(prefix), 'bin/svc');
  const files = completionFiles(resolve(prefix));
  await requireOurs(link);
  if (remove === true) {
    for (const path of [link, ...files.keys()]) await rm(path, { force: true });
  } else {
    for (const [path, text] of files) await putFile(path, text);
    await putLink(link);
  }
  const paths = [link, ...files.keys()];
  if (isJson) printJson({ removed: remove === true, paths });
  else print(paths.map((path) => `${remove === true ? 'removed' : 'put'} ${path}`).join('\n'));
}

function completionFiles(prefix: string): ReadonlyMap<string, string> {
  const { bash, zsh, fish } = COMPLETION_SCRIPTS;
  return new Map([
    [join(prefix, 'share/bash-completion/completions/svc'), bash],
    [join(prefix, 'share/zsh/site-functions/_svc'), zsh],
    [join(prefix, 'share/fish/vendor_completions.d/svc.fish'), fish],
  ]);
}

/** Somebody else's program of this name is theirs. A link is ours, also one of an earlier checkout. @throws UsageError */
async function requireOurs(link: string): Promise<void> {
  const found = await lstat(link).catch(() => null);
  if (found === null) return;
  const target = found.isSymbolicLink() ? await readlink(link) : '';
  if (target.endsWith('/svc')) return;
  throw new UsageError(
    `${link} is there and is not ours\n  try: svc install --prefix ANOTHER, or move it away`,
  );
}

async function putFile(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text, { mode: 0o644 });
}

/** At once: whoever types svc meanwhile finds the old one or the new one. */
async function putLink(link: string): Promise<void> {
  await mkdir(dirname(link), { recursive: true });
  const draft = `${link}.${process.pid}`;
  await symlink(OWN_SVC, draft);
  await rename(draft, link);
}
