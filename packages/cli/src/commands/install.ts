import { lstat, mkdir, readFile, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { Command } from 'commander';
import { COMPLETION_SCRIPTS } from '../completion/scripts.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { systemdUnit, UNIT_MARK } from '../server/systemd-unit.ts';
import { print, printJson, report } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';

interface InstallOptions {
  readonly prefix: string;
  readonly systemd?: boolean;
  readonly remove?: boolean;
}

/** The script at the root of this checkout. */
const OWN_SVC = resolve(import.meta.dirname, '../../../../svc');

export function createCommand(): Command {
  return new Command('install')
    .description(
      'Puts svc on PATH, as a link to this checkout, and the completion of bash, zsh and fish where they look for it;\n' +
        'with --systemd also a unit that keeps the server running. Nothing is started: it prints what to type next.\n' +
        'May be repeated; --remove takes all of it away again.',
    )
    .option('--prefix <dir>', 'folder that has bin and share', '/usr/local')
    .option('--systemd', 'also a unit of systemd for the server; of --path when that is given')
    .option('--remove', 'take away what an earlier install has put there')
    .addHelpText(
      'after',
      examples(
        ['sudo ./svc install', 'for everybody'],
        ['./svc install --prefix ~/.local', 'for oneself, where ~/.local/bin is on PATH'],
        ['sudo ./svc install --systemd', 'with a service; then: systemctl daemon-reload'],
        ['sudo systemctl enable --now svc', 'starts it, now and with the machine'],
        ['sudo svc install --remove', 'and away again'],
      ),
    )
    .action(install);
}

async function install({ prefix, systemd, remove }: InstallOptions, command: Command): Promise<void> {
  const { isJson, dataFolder, isFolderChosen } = readGlobals(command);
  // SAFETY: the folder that the user names, with the user's own rights; below it only names of ours.
  const root = resolve(prefix);
  const link = join(root, 'bin/svc');
  const unit = join(root, 'lib/systemd/system/svc.service');
  const files = completionFiles(root);
  await requireOurs(link);
  const hasUnit = await hasOurUnit(unit);
  if (systemd === true) files.set(unit, systemdUnit(link, isFolderChosen ? dataFolder : undefined));
  // A unit of an earlier install is removed also without --systemd.
  const paths = [link, ...files.keys(), ...(remove === true && hasUnit && systemd !== true ? [unit] : [])];
  if (remove === true) {
    for (const path of paths) await rm(path, { force: true });
  } else {
    for (const [path, text] of files) await putFile(path, text);
    await putLink(link);
  }
  if (isJson) return printJson({ removed: remove === true, paths });
  print(paths.map((path) => `${remove === true ? 'removed' : 'put'} ${path}`).join('\n'));
  if (remove !== true) await warnAboutUnreadableCheckout(link);
  if (remove === true && hasUnit) report('  next: systemctl disable --now svc; systemctl daemon-reload');
  else if (systemd === true) report('  next: systemctl daemon-reload && systemctl enable --now svc');
}

/** Other users cannot run a link to a checkout in the home of root, say. */
async function warnAboutUnreadableCheckout(link: string): Promise<void> {
  const { isWorldReadable } = await import('@svc/server/admin');
  if (!isWorldReadable(link) || isWorldReadable(OWN_SVC)) return;
  const checkout = dirname(OWN_SVC);
  report(
    `  note: other users find svc but cannot run it, because they may not read ${checkout}; for them move it, below /opt say, and install again`,
  );
}

function completionFiles(prefix: string): Map<string, string> {
  const { bash, zsh, fish } = COMPLETION_SCRIPTS;
  return new Map([
    [join(prefix, 'share/bash-completion/completions/svc'), bash],
    [join(prefix, 'share/zsh/site-functions/_svc'), zsh],
    [join(prefix, 'share/fish/vendor_completions.d/svc.fish'), fish],
  ]);
}

/** A link to a checkout is ours, also to an earlier one; another program of this name stays. @throws UsageError */
async function requireOurs(link: string): Promise<void> {
  const found = await lstat(link).catch(() => null);
  if (found === null) return;
  const target = found.isSymbolicLink() ? await readlink(link) : '';
  if (target.endsWith('/svc')) return;
  throw new UsageError(
    `${link} is there and is not ours\n  try: svc install --prefix ANOTHER, or move it away`,
  );
}

/** @throws UsageError when another program wrote it */
async function hasOurUnit(unit: string): Promise<boolean> {
  const text = await readFile(unit, 'utf8').catch(() => null);
  if (text === null || text.startsWith(UNIT_MARK)) return text !== null;
  throw new UsageError(`${unit} is there and is not ours\n  try: move it away`);
}

async function putFile(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text, { mode: 0o644 });
}

/** Replaces the link atomically: `svc` is the old one or the new one at every moment. */
async function putLink(link: string): Promise<void> {
  await mkdir(dirname(link), { recursive: true });
  const draft = `${link}.${process.pid}`;
  await symlink(OWN_SVC, draft);
  await rename(draft, link);
}
