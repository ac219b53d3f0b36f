import { PlatformError } from '@svc/contract/errors';
import { Command } from 'commander';
import { readGlobalsHere } from '../context/require-here.ts';
import { connectEngine } from '../engine/connect.ts';
import { findEngine } from '../engine/engine-process.ts';
import { examples } from '../examples.ts';
import { formatAge } from '../terminal/amounts.ts';
import { describeDisk } from '../terminal/describe-disk.ts';
import { print, printJson } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';

export function createCommand(): Command {
  return new Command('status')
    .description('Shows whether the engine answers, and what it can do. Exit code 1 when it does not answer.')
    .addHelpText(
      'after',
      examples(['svc engine status', 'for people'], ['svc engine status -o json', 'for programs']),
    )
    .action(showStatus);
}

async function showStatus(_options: unknown, command: Command): Promise<void> {
  const { dataFolder, isJson } = await readGlobalsHere(command, 'engines');
  const pid = await findEngine(dataFolder);
  const engine = await connectEngine(dataFolder);
  await requireUnfrozen(dataFolder);
  const capabilities = await engine.capabilities(AbortSignal.timeout(10_000));
  if (isJson) return printJson({ ...capabilities, pid: pid ?? null, dataFolder });
  print(
    `engine ${capabilities.version}, up ${formatAge(capabilities.startedAt, Date.now())}, ${capabilities.sandboxes} sandboxes`,
  );
  print(`data in ${dataFolder}${pid === undefined ? '' : `, pid ${pid}`}, cgroup ${capabilities.cgroup}`);
  print(describeDisk(capabilities.space));
  print(`default isolation: ${capabilities.defaultIsolation ?? 'none; see: svc doctor'}\n`);
  const rows = capabilities.runtimes.map((runtime) => [
    runtime.name,
    runtime.isolation,
    runtime.usable ? 'usable' : 'missing',
    runtime.reason,
  ]);
  print(formatTable(['RUNTIME', 'CLASS', 'STATE', 'WHY'], rows));
}

/** @throws PlatformError at once when the engine cannot answer */
async function requireUnfrozen(dataFolder: string): Promise<void> {
  const { describeFrozen, findFrozen } = await import('@svc/server/admin');
  const frozen = (await findFrozen(dataFolder)).find(({ process }) => process === 'engine');
  if (frozen !== undefined) throw new PlatformError('unavailable', describeFrozen(frozen));
}
