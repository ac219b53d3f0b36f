import { mkdir, open, readdir, rename, rm, stat, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Command } from 'commander';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { CopyProgress } from '../terminal/copy-progress.ts';
import { printJson, tell } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';

/** What a disk of its own has when it is new. */
const NO_DATA = new Set(['lost+found']);

export function createCommand(): Command {
  return new Command('restore')
    .description(
      'Makes a data folder of what svc backup wrote. Everything is read and its checksums are compared before anything takes its place:\n' +
        'a restore that fails or is killed leaves no data folder. The folder must be empty, and no server may run on it. As root.',
    )
    .argument('<file>', 'what svc backup wrote')
    .addHelpText(
      'after',
      examples(
        ['sudo svc restore /srv/svc.backup', 'into /var/lib/svc'],
        ['sudo svc restore --path /srv/try /srv/svc.backup', 'into another folder, to look at it'],
        ['sudo svc server start --detach', 'then'],
      ),
    )
    .action(restore);
}

async function restore(path: string, _options: unknown, command: Command): Promise<void> {
  const { dataFolder, isJson } = readGlobals(command);
  if (process.getuid?.() !== 0)
    throw new UsageError(
      'a restore makes files of root and of the server\n  try: the same command with sudo',
    );
  await using archive = await openArchive(path);
  // Others may pass through to the sockets and folders that are theirs.
  await mkdir(dataFolder, { recursive: true, mode: 0o711 });
  const lock = await requireIdle(dataFolder);
  try {
    await requireEmpty(dataFolder);
    const target = await chooseStage(dataFolder);
    // Of a restore that was killed.
    await rm(target.stage, { recursive: true, force: true });
    await mkdir(target.stage, { mode: 0o700 });
    try {
      const head = await fillStage(archive, target.stage);
      await takePlace(target, dataFolder);
      if (isJson)
        return printJson({ restored: dataFolder, created_at: head.createdAt, has_store: head.hasStore });
      tell(`restored into ${dataFolder}, as of ${head.createdAt}`);
      if (!head.hasStore) tell('  the rows are in PostgreSQL: restore them with pg_restore, then');
      tell('  next: svc server start --detach');
    } finally {
      await rm(target.stage, { recursive: true, force: true });
    }
  } finally {
    await lock.release();
  }
}

async function openArchive(path: string): Promise<FileHandle> {
  const file = await open(path, 'r');
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw new UsageError(`${path} is no file\n  try: a file that svc backup wrote`);
}

/** No server runs there, and none starts until it is released. @throws UsageError */
async function requireIdle(dataFolder: string): Promise<{ release(): Promise<void> }> {
  const { lockDataFolder } = await import('@svc/server/admin');
  const { findEngine } = await import('@svc/engine/client');
  const lock = await lockDataFolder(dataFolder, 'server');
  const isEngineThere = (await findEngine(dataFolder)) !== undefined;
  if (lock !== undefined && !isEngineThere) return lock;
  await lock?.release();
  const next = isEngineThere && lock !== undefined ? 'svc engine stop' : 'svc server stop';
  throw new UsageError(`a server or an engine runs on ${dataFolder}\n  try: ${next}, or another --path`);
}

/** @throws UsageError when there is something that a restore would mix with */
async function requireEmpty(dataFolder: string): Promise<void> {
  const names = (await readdir(dataFolder)).filter((name) => !NO_DATA.has(name) && name !== INSIDE);
  if (names.length === 0) return;
  throw new UsageError(
    `${dataFolder} is not empty (${names.slice(0, 3).join(', ')}${names.length > 3 ? ', …' : ''}); a restore replaces nothing\n` +
      `  try: mv ${dataFolder} ${dataFolder}.old, or another --path`,
  );
}

const INSIDE = 'restore.unfinished';

interface Stage {
  readonly stage: string;
  /** In the data folder, which is a disk of its own that nothing can be renamed onto. */
  readonly isInside: boolean;
}

/** On the file system where the data will be. */
async function chooseStage(dataFolder: string): Promise<Stage> {
  const isMountPoint = (await stat(dataFolder)).dev !== (await stat(dirname(dataFolder))).dev;
  if (isMountPoint) return { stage: join(dataFolder, INSIDE), isInside: true };
  return { stage: join(dirname(dataFolder), `${basename(dataFolder)}.${INSIDE}`), isInside: false };
}

async function fillStage(archive: FileHandle, folder: string) {
  const { restoreData } = await import('@svc/engine/backup');
  const { SERVER_FILES } = await import('@svc/server/admin');
  using progress = new CopyProgress(null);
  const source = async (into: Buffer) => {
    let done = 0;
    while (done < into.length) {
      const { bytesRead } = await archive.read(into, done, into.length - done);
      if (bytesRead === 0) break;
      done += bytesRead;
    }
    progress.addBytes(done);
    return done;
  };
  return await restoreData(source, {
    folder,
    serverFiles: SERVER_FILES.map((name) => `server/${name}`),
    onPiece: (piece) => progress.addFile(piece, 0),
    signal: new AbortController().signal,
  });
}

/** All at once; on a disk of its own name by name, the server's part last, without which no server finds its data. */
async function takePlace({ stage, isInside }: Stage, dataFolder: string): Promise<void> {
  await using folder = await open(stage, 'r');
  await folder.chmod(0o711);
  await folder.sync();
  if (!isInside) return await rename(stage, dataFolder);
  const names = (await readdir(stage)).toSorted((a, b) => Number(a === 'server') - Number(b === 'server'));
  for (const name of names) await rename(join(stage, name), join(dataFolder, name));
}
