import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Capabilities, EngineClient } from '@svc/engine/client';
import { Command, Option } from 'commander';
import { requireRestored } from '../backup/restore-stage.ts';
import { connectEngine } from '../engine/connect.ts';
import { engineOptions } from '../engine/engine-options.ts';
import { findEngine, logPath } from '../engine/engine-process.ts';
import { formatLogLine } from '../engine/format-log.ts';
import { lastLines } from '../engine/log-lines.ts';
import { followToEnd, toArguments, withOptions, type StartOptions } from '../engine/started-program.ts';
import { examples } from '../examples.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson, report } from '../terminal/print.ts';
import { UsageError } from '../usage-error.ts';

const START_TIMEOUT_MS = 60_000;
const OTHERS_MAY_PASS = 0o001;
const POLL_MS = 25;
const SHOWN_LOG_LINES = 15;

/** Options of the engine itself, passed on unchanged. */
const FORWARDED = [
  ...engineOptions(),
  new Option(
    '--network-ceiling <targets>',
    'what sandboxes may reach at most beside public addresses: private, host, metadata, link-local, ADDRESS[/BITS], with commas; none in front leaves public out (default: all)',
  ),
  new Option('--log-level <level>', 'how much the engine logs'),
  new Option('--prepared-slots <n>', 'network namespaces kept ready'),
  new Option('--prepared-disks <n>', 'disks kept ready'),
  new Option(
    '--listen <host:port>',
    'let servers on other machines use it over TLS; needs the three files (default: this machine only)',
  ),
  fileOption('--tls-cert <file>', 'certificate of this machine, with the name or address that servers use'),
  fileOption('--tls-key <file>', 'its key'),
  fileOption('--tls-ca <file>', 'authority that signs the certificates of servers'),
];

/** The engine has another working directory. */
function fileOption(flags: string, description: string): Option {
  return new Option(flags, description).argParser((path: string) => resolve(path));
}

const SOCKET_OWNER = 'socketOwner';

export function createCommand(): Command {
  const command = new Command('start')
    .description('Starts the engine. Sandboxes of an earlier run are taken up again.')
    .option('-d, --detach', 'in the background; returns when it answers')
    .option(
      '--socket-owner <user>',
      "whose servers may use it beside those of root: a user, or UID:GID (default: the data folder's own user)",
    )
    .addHelpText(
      'after',
      examples(
        ['svc engine start --detach', 'in the background'],
        ['svc engine start', 'here, with its log, until Ctrl-C'],
        ['svc engine start -d --warm python=2', 'with two started sandboxes ready'],
        [
          'svc engine start -d --listen 192.0.2.7:7443 --tls-cert node.crt --tls-key node.key --tls-ca ca.crt',
          'for servers elsewhere',
        ],
      ),
    )
    .action(start);
  return withOptions(command, FORWARDED);
}

async function start(options: StartOptions, command: Command): Promise<void> {
  const { dataFolder, isJson } = readGlobals(command);
  if (process.getuid?.() !== 0)
    throw new UsageError(
      'the engine needs root: it makes namespaces and mounts\n  try: sudo svc engine start',
    );
  const running = await findEngine(dataFolder);
  if (running !== undefined) {
    if (options['detach'] !== true)
      throw new UsageError(`the engine runs already (pid ${running})\n  try: svc engine stop`);
    return isJson
      ? printJson({ pid: running, started: false })
      : print(`the engine runs already (pid ${running})`);
  }
  await requireRestored(dataFolder);
  // SAFETY: root users of sandboxes pass through this folder to their sockets but cannot list it.
  await mkdir(dataFolder, { recursive: true, mode: 0o711 });
  await checkPassable(dataFolder);
  const words = [...toArguments(options, FORWARDED), ...(await socketOwner(dataFolder, options))];
  if (options['detach'] !== true) return await runHere(dataFolder, words);
  const pid = await startDetached(dataFolder, words);
  if (isJson) printJson({ pid, started: true });
  else print(`engine started (pid ${pid}), data in ${dataFolder}; next: svc server start --dev --detach`);
}

/** The numeric user and group, found by the same rule as the server's own user. */
async function socketOwner(
  dataFolder: string,
  { [SOCKET_OWNER]: owner }: StartOptions,
): Promise<readonly string[]> {
  const { findIdentity, installationUser, StartError } = await import('@svc/server/admin');
  try {
    const isNamed = typeof owner === 'string';
    const { uid, gid } = isNamed ? findIdentity(owner, '--socket-owner') : installationUser(dataFolder);
    return ['--socket-owner', `${uid}:${gid}`];
  } catch (error) {
    throw error instanceof StartError ? new UsageError(error.message) : error;
  }
}

async function startDetached(dataFolder: string, options: readonly string[]): Promise<number> {
  await using log = await open(logPath(dataFolder), 'a', 0o640);
  const child = await launch(dataFolder, options, ['ignore', log.fd, log.fd], true);
  const failed = once(child, 'exit').then(() => true);
  let isOver = false;
  void failed.then(() => (isOver = true));
  await once(child, 'spawn');
  const engine = await connectEngine(dataFolder);
  const answer = await waitForEngine(engine, START_TIMEOUT_MS, () => isOver);
  if (answer !== undefined) {
    child.unref();
    return (await findEngine(dataFolder)) ?? 0;
  }
  const lines = await lastLines(logPath(dataFolder), SHOWN_LOG_LINES);
  if (!isOver) child.kill('SIGTERM');
  const shown = lines.map((line) => `  ${formatLogLine(line)}`).join('\n');
  throw new Error(`the engine did not start; the end of its log says:\n${shown}`);
}

/** Runs it in the foreground: its log goes to our stderr, and it gets our signals. */
async function runHere(dataFolder: string, options: readonly string[]): Promise<void> {
  const child = await launch(dataFolder, options, ['ignore', 'inherit', 'inherit'], false);
  await once(child, 'spawn');
  const code = await followToEnd(child);
  report('engine stopped; its sandboxes run on. Next: svc engine start --detach');
  process.exitCode = code;
}

async function launch(
  dataFolder: string,
  options: readonly string[],
  stdio: StdioOptions,
  detached: boolean,
): Promise<ChildProcess> {
  const { engineCommand } = await import('@svc/engine/client');
  const [program, ...args] = engineCommand(dataFolder, options);
  // SAFETY: no shell; a fixed program with the operator's own options.
  return spawn(program, args, { stdio, detached, cwd: '/' });
}

/** Root of a sandbox is an ordinary user of this host, who needs search permission on every folder above its files. */
async function checkPassable(folder: string): Promise<void> {
  const { mode } = await stat(folder);
  if ((mode & OTHERS_MAY_PASS) === 0)
    throw new UsageError(
      `sandboxes cannot pass through ${folder}\n  try: chmod o+x ${folder}, or another --path`,
    );
  if (folder !== '/') await checkPassable(dirname(folder));
}

/** Polls until the engine answers; undefined when `isOver` says that it never will, or after `timeoutMs`. */
async function waitForEngine(
  engine: EngineClient,
  timeoutMs: number,
  isOver: () => boolean,
): Promise<Capabilities | undefined> {
  const deadline = performance.now() + timeoutMs;
  while (performance.now() < deadline && !isOver()) {
    const answer = await engine.capabilities(AbortSignal.timeout(timeoutMs)).catch(() => undefined);
    if (answer !== undefined) return answer;
    await delay(POLL_MS);
  }
  return undefined;
}
