import { COMMAND_GROUPS } from './command-list.ts';
import { namedCommands } from './program.ts';
import { UsageError } from './usage-error.ts';

/** Commands of other container tools with exactly the same meaning as one of ours. */
const SAME: Readonly<Record<string, readonly string[]>> = {
  images: ['image', 'ls'],
  rmi: ['image', 'rm'],
};

/** Commands of other tools for which svc has another way. NAME stands for the sandbox that was typed. */
export const INSTEAD: Readonly<Record<string, string>> = {
  shell: 'svc exec -it NAME sh   # or, with OpenSSH: svc ssh NAME',
  sh: 'svc exec -it NAME sh',
  bash: 'svc exec -it NAME bash',
  enter: 'svc exec -it NAME sh',
  connect: 'svc exec -it NAME sh   # or, with OpenSSH: svc ssh NAME',
  top: 'svc exec NAME ps   # its processes; what it uses: svc stats NAME',
  prune: 'svc image prune   # images; sandboxes that do not run: svc ps --all, svc rm NAME',
  system: 'svc info   # the disk of this machine: svc engine status; to free space: svc image prune',
  login: "svc context add NAME --url URL --key-stdin   # a registry's password goes to svc image pull --help",
  logout: 'svc context rm NAME',
  diff: 'svc cp NAME:/path -   # svc does not compare a disk with its image; this shows files as they are',
  commit:
    'svc snapshot create NAME SNAPSHOT   # new sandboxes start from it: svc run --snapshot SNAPSHOT - COMMAND',
  pause: 'svc stop NAME   # the disk is kept, memory is not; svc start NAME goes on from the disk',
  unpause: 'svc start NAME',
  resume: 'svc start NAME',
  fork: 'svc snapshot create NAME SNAPSHOT; svc run --snapshot SNAPSHOT - COMMAND',
  delete: 'svc rm NAME',
  remove: 'svc rm NAME',
  list: 'svc ps',
  status: 'svc ps   # the server: svc server status',
  up: 'svc server start --detach',
  down: 'svc server stop',
  load: 'svc image import FILE NAME',
  import: 'svc image import FILE NAME',
  save: 'svc snapshot create NAME SNAPSHOT   # svc keeps images and does not write them to files',
  export: 'svc cp NAME:/ FOLDER',
  push: 'svc image ls   # svc has no registry to push from; push with the tool that built the image',
  tag: 'svc image pull REFERENCE   # an image has the name it was pulled or imported under',
  search: 'svc image ls   # what is there; others by their full name: svc image pull REFERENCE',
  history: 'svc image inspect REFERENCE',
  network: 'svc net --help   # what a sandbox may reach',
  compose: 'svc run -d --name NAME IMAGE   # one sandbox for each service; svc reads no compose file',
  dashboard: 'svc server status   # prints the address of the dashboard',
  signup: 'svc member --help',
  keygen: 'svc server keygen',
  key: 'svc apikey --help',
  config: 'svc context --help',
};

/**
 * Replaces a command of another tool by ours where the meaning is the same.
 * @throws UsageError with the command to type instead, where svc works differently
 */
export function translateForeignWords(words: readonly string[]): readonly string[] {
  const [typed] = namedCommands(words);
  if (typed === undefined || isOurs(typed)) return words;
  const at = words.indexOf(typed);
  const same = Object.hasOwn(SAME, typed) ? SAME[typed] : undefined;
  if (same !== undefined) return [...words.slice(0, at), ...same, ...words.slice(at + 1)];
  const instead = Object.hasOwn(INSTEAD, typed) ? INSTEAD[typed] : undefined;
  if (instead === undefined) return words;
  const name = words.slice(at + 1).find((word) => /^[a-z0-9][\w.-]*$/.test(word)) ?? 'NAME';
  throw new UsageError(`svc has no command '${typed}'\n  try: ${instead.replaceAll(/\bNAME\b/g, name)}`);
}

function isOurs(word: string): boolean {
  return COMMAND_GROUPS.some(({ commands }) =>
    commands.some(({ name, alias }) => name === word || alias === word),
  );
}
