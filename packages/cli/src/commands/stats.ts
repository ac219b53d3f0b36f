import { setTimeout as delay } from 'node:timers/promises';
import { Command } from 'commander';
import type { SandboxMetrics } from '@svc/engine/client';
import { connectEngine } from '../engine/connect.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { formatBytes } from '../terminal/amounts.ts';
import { print, printJson } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';

const REFRESH_MS = 1000;
const CLEAR_SCREEN = '\u001B[H\u001B[2J';

export function createCommand(): Command {
  return new Command('stats')
    .description('Shows what running sandboxes use: CPU, memory, disk, network, processes.')
    .argument('[name...]', 'only these sandboxes')
    .option('-f, --follow', 'refresh every second')
    .addHelpText('after', examples(['svc stats', 'once'], ['svc stats -f web', 'one sandbox, until Ctrl-C']))
    .action(showStats);
}

async function showStats(
  names: readonly string[],
  options: { readonly follow?: boolean },
  command: Command,
): Promise<void> {
  const { dataFolder, isJson } = readGlobals(command);
  const engine = await connectEngine(dataFolder);
  do {
    const all = await engine.metrics();
    const wanted = all.filter(({ id }) => names.length === 0 || names.includes(id));
    if (isJson) printJson(wanted);
    else print((options.follow === true && process.stdout.isTTY ? CLEAR_SCREEN : '') + statsTable(wanted));
    if (options.follow === true) await delay(REFRESH_MS);
  } while (options.follow === true);
}

function statsTable(all: readonly SandboxMetrics[]): string {
  const rows = all.map((metrics) => [
    metrics.id,
    `${metrics.cpuPercent.toFixed(1)}%`,
    `${formatBytes(metrics.memoryBytes)} of ${formatBytes(metrics.memoryLimitBytes)}`,
    `${formatBytes(metrics.diskUsedBytes)} of ${formatBytes(metrics.diskTotalBytes)}`,
    `${formatBytes(metrics.networkReceivedBytes)} in, ${formatBytes(metrics.networkSentBytes)} out`,
    String(metrics.processes),
  ]);
  return formatTable(['NAME', 'CPU', 'MEMORY', 'DISK', 'NETWORK', 'PROCESSES'], rows);
}
