import { mkdir, open } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { isErrno } from '@svc/contract/errno';
import { PlatformError } from '@svc/contract/errors';
import { Command } from 'commander';
import { RestoreStage } from '../backup/restore-stage.ts';
import { examples } from '../examples.ts';
import { readGlobalsHere } from '../context/require-here.ts';
import { CopyProgress } from '../terminal/copy-progress.ts';
import { printJson, report } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';

const READ_BYTES = 1024 * 1024;

export function createCommand(): Command {
  return new Command('restore')
    .description(
      'Makes a data folder of what svc backup wrote. Everything is read and its checksums are compared before anything takes its place:\n' +
        'one that fails leaves nothing, and after one that was killed no server starts before the restore is repeated.\n' +
        'The folder must be empty, and no server may run on it. As root.',
    )
    .argument('<file>', 'what svc backup wrote; - for standard input')
    .addHelpText(
      'after',
      examples(
        ['sudo svc restore /srv/svc.backup', 'into /var/lib/svc'],
        ['sudo svc restore --path /srv/try /srv/svc.backup', 'into another folder, to look at it'],
        ['ssh vault cat svc.zst | zstd -d | sudo svc restore -', 'from elsewhere'],
        ['sudo svc server start --detach', 'then'],
      ),
    )
    .action(restore);
}

async function restore(path: string, _options: unknown, command: Command): Promise<void> {
  const { dataFolder, isJson } = await readGlobalsHere(command, 'backups');
  if (process.getuid?.() !== 0)
    throw new UsageError(
      'a restore makes files of root and of the server\n  try: the same command with sudo',
    );
  const archive = await openArchive(path);
  // Other users may pass through to their sockets and folders.
  await mkdir(dataFolder, { recursive: true, mode: 0o711 });
  const lock = await requireIdle(dataFolder);
  try {
    const stage = await RestoreStage.prepare(dataFolder);
    const head = await fill(stage, archive).catch(async (error: unknown) => {
      await stage.discard();
      throw isDiskFull(error) ? diskFullError(dataFolder, error) : error;
    });
    if (isJson)
      return printJson({ restored: dataFolder, created_at: head.createdAt, has_store: head.hasStore });
    report(`restored into ${dataFolder}, as of ${head.createdAt}`);
    if (!head.hasStore) report('  the rows are in PostgreSQL: restore them with pg_restore, then');
    report('  next: svc server start --detach');
  } finally {
    await lock.release();
  }
}

async function openArchive(path: string): Promise<Readable> {
  if (path === '-') {
    if (process.stdin.isTTY)
      throw new UsageError('a terminal has no backup\n  try: svc restore - < FILE, or svc restore FILE');
    return process.stdin;
  }
  const file = await open(path, 'r');
  if ((await file.stat()).isFile()) return file.createReadStream({ highWaterMark: READ_BYTES });
  await file.close();
  throw new UsageError(`${path} is no file\n  try: a file that svc backup wrote, or - for standard input`);
}

/** Takes the lock of the data folder, so that no server runs or starts there. @throws UsageError */
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

async function fill(stage: RestoreStage, archive: Readable) {
  const { restoreData } = await import('@svc/engine/backup');
  const { SERVER_FILES } = await import('@svc/server/admin');
  using progress = new CopyProgress(null);
  const chunks = (archive as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  let rest: Buffer = Buffer.alloc(0);
  const source = async (into: Buffer) => {
    let done = 0;
    while (done < into.length) {
      if (rest.length === 0) {
        const next = await chunks.next();
        if (next.done === true) break;
        rest = next.value;
      }
      const taken = rest.copy(into, done);
      rest = rest.subarray(taken);
      done += taken;
    }
    progress.addBytes(done);
    return done;
  };
  const head = await restoreData(source, {
    folder: stage.folder,
    serverFiles: SERVER_FILES.map((name) => `server/${name}`),
    onPiece: (piece) => progress.addFile(piece, 0),
    signal: new AbortController().signal,
  });
  await stage.takePlace();
  return head;
}

function isDiskFull(error: unknown): boolean {
  return isErrno(error, 'ENOSPC', 'EDQUOT') || PlatformError.is(error, 'insufficient_storage');
}

function diskFullError(dataFolder: string, cause: unknown): PlatformError {
  const message = `the disk of ${dataFolder} has too little room for what the backup holds. Nothing was changed`;
  return new PlatformError('insufficient_storage', `${message}\n  try: df -h ${dataFolder}, and make room`, {
    cause,
  });
}
