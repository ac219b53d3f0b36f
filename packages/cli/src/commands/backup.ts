import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Command } from 'commander';
import type { Piece } from '@svc/engine/backup';
import { writeOutput, writePrivateFile } from '../backup/output-file.ts';
import { serverPart } from '../backup/server-part.ts';
import { examples } from '../examples.ts';
import { databaseOption, readHere, type LocalCommand } from '../local-store.ts';
import { formatBytes } from '../terminal/amounts.ts';
import { CopyProgress } from '../terminal/copy-progress.ts';
import { printJson, report } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';
import about from '../../package.json' with { type: 'json' };

interface BackupOptions {
  readonly disks: boolean;
  readonly secretsKey?: string;
}

export function createCommand(): Command {
  return new Command('backup')
    .description(
      'Copies what cannot be made anew into one file, while the server runs: the store, keys, certificates, and with them\n' +
        'disks, volumes, snapshots and images. A sandbox that runs waits while its own disk is copied, and lives on.\n' +
        'The file holds keys: it is for root alone (0600). With PostgreSQL the rows are left to pg_dump. As root.',
    )
    .argument('<file>', 'a new file; - for standard output')
    .option('--no-disks', 'the small one: store, keys and certificates alone')
    .option('--secrets-key <file>', 'where the server has its key file when that is not in the data folder')
    .addOption(databaseOption())
    .addHelpText(
      'after',
      examples(
        ['sudo svc backup /srv/svc.backup', 'all of it'],
        ['sudo svc backup - | zstd | ssh vault "cat > svc.zst"', 'elsewhere, compressed'],
        ['sudo svc restore /srv/svc.backup', 'on a machine without data'],
      ),
    )
    .action(backup);
}

async function backup(file: string, options: BackupOptions, command: Command): Promise<void> {
  const local = await readHere(command, 'backups');
  const { dataFolder, isJson } = local;
  if (process.getuid?.() !== 0)
    throw new UsageError('a backup reads what is for root alone\n  try: the same command with sudo');
  const { lockDataFolder } = await import('@svc/server/admin');
  // The lock is released when the process ends in any way.
  const lock = await lockDataFolder(dataFolder, 'backup');
  if (lock === undefined) throw new UsageError('a backup is being made\n  try: again when it is done');
  const stage = join(dataFolder, 'backup.unfinished');
  let bytes = 0;
  using progress = new CopyProgress(null);
  const fill = async (write: (bytes: Buffer) => Promise<void>) => {
    const { writeArchive } = await import('@svc/engine/backup');
    const head = {
      version: about.version,
      createdAt: new Date().toISOString(),
      hasStore: local.place.databaseUrl === undefined,
      hasDisks: options.disks,
    };
    const sink = async (chunk: Buffer) => {
      await write(chunk);
      bytes += chunk.length;
      progress.addBytes(chunk.length);
    };
    return await writeArchive(head, parts(local, options, stage), sink, () => progress.addFile('', 0));
  };
  try {
    const pieces = file === '-' ? await writeOutput(fill) : await writePrivateFile(file, fill);
    if (isJson && file !== '-') printJson({ file, pieces, bytes });
    else report(`${dataFolder}: ${pieces} files, ${formatBytes(bytes)}. They hold keys: keep them secret`);
  } finally {
    await rm(stage, { recursive: true, force: true });
    await lock.release();
  }
}

/** The store is saved first: objects created afterwards have no row and stay stopped. In the other order rows would lack their disks. */
async function* parts(
  { dataFolder, place }: LocalCommand,
  options: BackupOptions,
  stage: string,
): AsyncGenerator<Piece> {
  const { prepareStage, engineParts } = await import('@svc/engine/backup');
  await prepareStage(stage);
  yield* serverPart(place, options.secretsKey);
  const signal = new AbortController().signal;
  yield* engineParts({ dataFolder, stage, hasDisks: options.disks, signal });
}
