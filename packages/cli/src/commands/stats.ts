import { setTimeout as delay } from 'node:timers/promises';
import { Command } from 'commander';
import type { Client, RestCallOutput, Sandbox } from '@svc/sdk';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { formatBytes, formatPercent } from '../terminal/amounts.ts';
import { printDrawn, printJson } from '../terminal/print.ts';
import { formatTable } from '../terminal/table.ts';

type Metrics = RestCallOutput<'sandboxes.metrics'>;

const REFRESH_MS = 2000;
/** The server measures every few seconds; older samples are stale. */
const RANGE_SECONDS = 30;
const STEP_SECONDS = 5;
const HOME_AND_CLEAR = '\u001B[H\u001B[J';

export function createCommand(): Command {
  return new Command('stats')
    .description(
      'Shows what running sandboxes use: CPU, memory, disk, network, processes. On a terminal it goes on until Ctrl-C.',
    )
    .argument('[name...]', 'only these sandboxes')
    .option('--no-stream', 'once')
    .addHelpText('after', examples(['svc stats', 'live'], ['svc stats --no-stream web', 'one sandbox, once']))
    .action(showStats);
}

async function showStats(
  names: readonly string[],
  options: { readonly stream: boolean },
  command: Command,
): Promise<void> {
  const globals = readGlobals(command);
  const { connectServer } = await import('../server/connect.ts');
  const client = await connectServer(globals);
  const isLive = options.stream && process.stdout.isTTY && !globals.isJson;
  for (;;) {
    const measured = await measure(client, names);
    if (globals.isJson) return printJson(measured.map(({ metrics }) => metrics));
    printDrawn((isLive ? HOME_AND_CLEAR : '') + statsTable(measured));
    if (!isLive) return;
    await delay(REFRESH_MS);
  }
}

interface Measured {
  readonly name: string;
  readonly metrics: Metrics;
}

async function measure(client: Client, names: readonly string[]): Promise<readonly Measured[]> {
  const { Sandbox } = await import('@svc/sdk');
  const sandboxes: readonly Sandbox[] =
    names.length === 0
      ? await Array.fromAsync(Sandbox.list({ client }))
      : await Promise.all(names.map((name) => Sandbox.connect(name, { client })));
  const running = sandboxes.filter(({ status }) => status === 'running' || names.length > 0);
  const range = { rangeSeconds: RANGE_SECONDS, stepSeconds: STEP_SECONDS };
  return await Promise.all(
    running.map(async (sandbox) => ({ name: sandbox.name, metrics: await sandbox.metrics(range) })),
  );
}

function statsTable(all: readonly Measured[]): string {
  const rows = all.map(({ name, metrics: { metrics } }) => {
    const last = (key: keyof Metrics['metrics']) => metrics[key][0]?.samples.at(-1)?.[1];
    const bytes = (key: keyof Metrics['metrics']) => shown(last(key), formatBytes);
    return [
      name,
      shown(last('cpu'), formatPercent),
      `${bytes('memory_bytes')} of ${bytes('memory_limit_bytes')}`,
      `${bytes('disk_used_bytes')} of ${bytes('disk_total_bytes')}`,
      `${bytes('net_rx_bytes_rate')}/s in, ${bytes('net_tx_bytes_rate')}/s out`,
      shown(last('processes'), (count) => String(Math.round(count))),
    ];
  });
  return formatTable(['NAME', 'CPU', 'MEMORY', 'DISK', 'NETWORK', 'PROCESSES'], rows);
}

function shown(value: number | undefined, format: (value: number) => string): string {
  return value === undefined ? '-' : format(value);
}
