import { Command } from 'commander';
import { readGlobalsHere } from '../context/require-here.ts';
import type { FrozenProcess, SandboxStatus, ServerStatus } from '@svc/server/admin';
import { examples } from '../examples.ts';
import { formatAge, formatBytes, formatPercent } from '../terminal/amounts.ts';
import { describeDisk } from '../terminal/describe-disk.ts';
import { print, printJson } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';

export function createCommand(): Command {
  return new Command('status')
    .description(
      'Shows whether the server runs, where, whether it asks for a key, and its sandboxes.\n' +
        'Exit codes: 0 it runs, 1 failed or a process of it is frozen, 3 it does not run.',
    )
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      examples(['svc server status', 'for people'], ['svc server status --json', 'for programs']),
    )
    .action(showStatus);
}

const FROZEN = 1;
const NOT_RUNNING = 3;

async function showStatus(options: { readonly json?: boolean }, command: Command): Promise<void> {
  const { dataFolder, isJson } = await readGlobalsHere(command, 'servers');
  const { describeFrozen, findFrozen, findServer, readStatus } = await import('@svc/server/admin');
  const pid = await findServer(dataFolder);
  const frozen = await findFrozen(dataFolder);
  const status = await readStatus(dataFolder).catch((error: unknown) => {
    if (frozen.length === 0) throw error;
    return undefined;
  });
  if (frozen.length > 0) process.exitCode = FROZEN;
  else if (status === undefined) process.exitCode = NOT_RUNNING;
  if (isJson || options.json === true) return printJson(toJson(pid, status, frozen));
  for (const process of frozen) print(describeFrozen(process));
  if (status === undefined)
    return print(
      pid === undefined
        ? `no server runs on the data folder ${dataFolder}\n  next: svc server start --detach`
        : `the server (pid ${pid}) does not answer yet\n  next: svc server logs`,
    );
  print(
    `server on ${status.url}, up ${formatAge(status.startedAt, Date.now())}${pid === undefined ? '' : `, pid ${pid}`}`,
  );
  print(
    status.isDev
      ? 'authentication: off (--dev); every caller may do everything'
      : `authentication: required; ${status.keys} keys handed out`,
  );
  const way = status.isDev || status.hasPeople ? '' : '; no account yet: svc user link';
  print(`dashboard: ${status.url}/${way}`);
  print(`data in ${dataFolder}`);
  const { engine } = status;
  print(engine.isHealthy ? `isolation: ${engine.isolation}` : `the engine is away: ${engine.reason}`);
  for (const disk of status.disks)
    print(`${disk.node === null ? '' : `node ${disk.node}: `}${describeDisk(disk)}`);
  for (const { name, problem } of status.nodes) if (name !== null && problem !== null) print(problem);
  if (status.sandboxes.length === 0) return print('no sandboxes');
  print('');
  // Last, because it is long.
  const hasReasons = status.sandboxes.some(({ failure }) => failure !== null);
  const titles = ['NAMESPACE', 'NAME', 'STATE', 'CPU', 'MEMORY', 'DISK', ...(hasReasons ? ['REASON'] : [])];
  print(formatTable(titles, status.sandboxes.map(toRow)));
}

function toRow(sandbox: SandboxStatus): string[] {
  const { namespace, name, state, failure, cpuPercent, memoryBytes, diskBytes } = sandbox;
  return [
    namespace,
    name,
    state,
    cpuPercent === null ? '-' : formatPercent(cpuPercent),
    memoryBytes === null ? '-' : formatBytes(memoryBytes),
    diskBytes === null ? '-' : formatBytes(diskBytes),
    ...(failure === null ? [] : [failure]),
  ];
}

function diskToJson(disk: ServerStatus['disks'][number]): object {
  return {
    ...(disk.node === null ? {} : { node: disk.node }),
    total_bytes: disk.totalBytes,
    free_bytes: disk.freeBytes,
    reserve_bytes: disk.reserveBytes,
    promised_bytes: disk.promisedBytes,
    short: disk.isShort,
    fault: disk.fault,
  };
}

function toJson(
  pid: number | undefined,
  status: ServerStatus | undefined,
  found: readonly FrozenProcess[],
): object {
  const frozen = found.map(({ process, pid }) => ({ process, pid }));
  if (status === undefined) return { running: false, pid: pid ?? null, frozen };
  const { url, isDev, startedAt, keys, engine, disks, nodes, sandboxes } = status;
  const [disk] = disks;
  const isFleet = nodes.some(({ name }) => name !== null);
  return {
    running: true,
    pid: pid ?? null,
    frozen,
    url,
    authentication_required: !isDev,
    started_at: startedAt,
    keys,
    engine: { healthy: engine.isHealthy, reason: engine.reason, isolation: engine.isolation },
    ...(isFleet
      ? { nodes, disks: disks.map(diskToJson) }
      : { disk: disk === undefined ? null : diskToJson(disk) }),
    sandboxes: sandboxes.map(({ namespace, name, state, failure, cpuPercent, memoryBytes, diskBytes }) => ({
      namespace,
      name,
      state,
      failure,
      cpu_percent: cpuPercent,
      memory_bytes: memoryBytes,
      disk_bytes: diskBytes,
    })),
  };
}
