import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Command, Option } from 'commander';
import type { ServerStatus } from '@svc/server/admin';
import { requireRestored } from '../backup/restore-stage.ts';
import { logPath as engineLogPath } from '../engine/engine-process.ts';
import { engineOptions } from '../engine/engine-options.ts';
import { formatLogLine } from '../engine/format-log.ts';
import { lastLines } from '../engine/log-lines.ts';
import { followToEnd, toArguments, withOptions } from '../engine/started-program.ts';
import type { StartOptions } from '../engine/started-program.ts';
import { examples } from '../examples.ts';
import { announceDashboard, type StartedServer } from '../server/announce-dashboard.ts';
import { readGlobals } from '../globals.ts';
import { print, printJson, report, reportEntry } from '../terminal/print.ts';

const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 40_000;
const POLL_MS = 20;
const SHOWN_LOG_LINES = 15;
const ALL = Number.POSITIVE_INFINITY;
/** One that fails this often fails for a reason that stays; it may have met the one before it that was just ending. */
const ENGINE_FAILURES = 2;

/** Options of the server itself, forwarded to it unchanged. */
const FORWARDED = [
  new Option('--host <host>', 'address or name to listen on (default: 127.0.0.1)'),
  new Option('--port <port>', 'port to listen on (default: 5555)'),
  new Option('--dev', 'require no key'),
  new Option('--allow-remote-dev', 'with --dev: also when others than this machine can connect'),
  new Option(
    '--reset-key',
    'make a new signing key: every key, session and token handed out before stops working',
  ),
  new Option('--allowed-host <name...>', 'more names under which clients reach this server'),
  new Option('--cors-origin <origin...>', 'pages that may call this server from a browser'),
  ...engineOptions(),
  new Option(
    '--network-ceiling <targets...>',
    'what sandboxes may reach at most beside public addresses: private, host, metadata, link-local, ADDRESS[/BITS], with commas; none in front leaves public out, all is everything; ORG=TARGETS for one organization (default: public; with --dev all)',
  ),
  new Option('--database <url>', 'PostgreSQL instead of the built-in store; better in SVC_DATABASE_URL'),
  new Option(
    '--secrets-key <file>',
    'keys that secrets in the database are sealed with; made when missing',
  ).argParser((path) => resolve(path)),
  new Option(
    '--plans <file>',
    'plans, limits and prices of organizations; kept until another file is given',
  ).argParser((path: string) => resolve(path)),
  new Option('--ssh-port <port>', 'let SSH into sandboxes on this port, such as 5522 (default: off)'),
  new Option(
    '--ssh-idle-timeout <seconds>',
    'end SSH without traffic after this long; 0: never (default: 600)',
  ),
  new Option(
    '--preview-domain <domain>',
    'show ports of sandboxes at <port>-<slug>.<domain>; a URL when browsers use TLS; off: nowhere (default: localhost when only this machine can connect)',
  ),
  new Option(
    '--e2b-ports <who>',
    "who reaches ports of sandboxes that E2B's clients make without allowPublicTraffic: public, all who know the id, or token, those who send its token (default: public)",
  ),
  new Option('--publish-address <address...>', 'addresses beside 127.0.0.1 that ports may be published on'),
  new Option('--engine-socket <path>', 'use the engine behind this socket and start none'),
  new Option(
    '--nodes <file>',
    'use the engines of the hosts in this JSON file, over TLS, and start none (docs/operating/fleet.md)',
  ).argParser((path: string) => resolve(path)),
  new Option(
    '--run-as <user>',
    "whom the web-facing process becomes when started as root (default: the data folder's own user)",
  ),
  new Option('--max-body-bytes <n>', 'largest request (default: 2 MiB)'),
  new Option('--max-calls <n>', 'calls at work at the same time (default: 1024)'),
  new Option(
    '--rate-limit <n>',
    'requests of one organization or user in a minute, on every surface but SSH and previews (default: no limit)',
  ),
  new Option(
    '--recovery-time <seconds>',
    'how long sandboxes may be out of reach before their owner has to decide about them (default: 600)',
  ),
  new Option(
    '--max-orgs-per-user <n>',
    'organizations that one user may own (default: 20; 0: as many as they like)',
  ),
  new Option('--sign-up <who>', 'who may make an account: invited, open or closed (default: invited)'),
  new Option(
    '--allow-private-targets',
    'let addresses that organizations give (identity providers, webhooks) lead into this network, and without TLS (default: off)',
  ),
  new Option('--keep-events <days>', 'for how long audit events are kept (default: 90; 0: for ever)'),
  new Option(
    '--keep-failed <hours>',
    'for how long sandboxes are kept that failed and never ran (default: 24; 0: for ever)',
  ),
  new Option('--log-level <level>', 'how much the server logs (default: info)'),
];

export function createCommand(): Command {
  const command = new Command('start')
    .description(
      'Starts the server, and an engine when none runs. Sandboxes outlive both.\n' +
        'Exit codes: 0 stopped, 1 failed, 2 bad option, 3 runs already, 4 address in use.',
    )
    .option('-d, --detach', 'in the background; returns when it answers')
    .addHelpText(
      'after',
      examples(
        ['svc server start --dev --detach', 'in the background, without keys'],
        ['svc server start', 'here, with its log, until Ctrl-C'],
        ['export SVC_API_KEY=$(svc server keygen --quiet)', 'then: a key for a client'],
      ),
    )
    .action(start);
  return withOptions(command, FORWARDED);
}

async function start(options: StartOptions, command: Command): Promise<void> {
  const { dataFolder, isJson } = readGlobals(command);
  const { EXIT, findServer, readStatus } = await import('@svc/server/admin');
  const running = await findServer(dataFolder);
  if (running !== undefined) {
    const where =
      (await readStatus(dataFolder).catch(() => undefined))?.url ?? 'an address that it does not tell yet';
    process.exitCode = EXIT.alreadyRunning;
    if (isJson) return printJson({ pid: running, url: where, started: false });
    return print(
      `the server of ${dataFolder} runs already on ${where} (pid ${running})\n  next: svc server status`,
    );
  }
  await requireRestored(dataFolder);
  const databaseUrl = typeof options['database'] === 'string' ? options['database'] : undefined;
  if (options['detach'] !== true)
    return await runHere({ dataFolder, databaseUrl }, toArguments(options, FORWARDED));
  const started = await startDetached(dataFolder, toArguments(options, FORWARDED));
  if (started === undefined) return;
  const { pid, status } = started;
  if (isJson) return printJson({ pid, url: status.url, isDev: status.isDev, started: true });
  print(`server started on ${status.url} (pid ${pid}), data in ${dataFolder}`);
  if (!status.engine.isHealthy) {
    print(`  it cannot run sandboxes yet: ${status.engine.reason}`);
    if (process.getuid?.() !== 0) print('  an engine needs root: sudo svc engine start --detach');
  }
  print(
    '  nothing restarts it when it is killed, or after a reboot; systemd does: sudo svc install --systemd',
  );
  await announceDashboard({ dataFolder, databaseUrl, status }, process.stdout);
  print(
    status.isDev ? '  no key is needed (--dev)' : '  next: export SVC_API_KEY=$(svc server keygen --quiet)',
  );
}

async function startDetached(
  dataFolder: string,
  options: readonly string[],
): Promise<{ readonly pid: number; readonly status: ServerStatus } | undefined> {
  const { serverLogPath } = await import('@svc/server/admin');
  await mkdir(dataFolder, { recursive: true, mode: 0o711 });
  const logs = { server: serverLogPath(dataFolder), engine: engineLogPath(dataFolder) };
  const before = { server: await sizeOf(logs.server), engine: await sizeOf(logs.engine) };
  await using log = await open(logs.server, 'a', 0o640);
  const child = await launch(dataFolder, options, ['ignore', log.fd, log.fd], true);
  const exited = once(child, 'exit') as Promise<[number | null]>;
  // Only root starts an engine, and only when none was named; waiting does not bring up another one.
  const isExternal = options.includes('--engine-socket') || options.includes('--nodes');
  const hasOwnEngine = process.getuid?.() === 0 && !isExternal;
  const engineFailures = async () => {
    const ended = (await lastLines(logs.engine, ALL, before.engine)).filter(isFatalEntry);
    const missing = (await lastLines(logs.server, ALL, before.server)).filter(isFailedStart);
    return [...ended, ...missing].slice(ENGINE_FAILURES - 1);
  };
  const status = await waitForStatus(dataFolder, child, hasOwnEngine, engineFailures);
  if (typeof status === 'object') {
    child.unref();
    return { pid: child.pid ?? 0, status };
  }
  if (child.exitCode === null) child.kill('SIGTERM');
  // The code of the server says why; see `svc server start --help`. One that was told to end has ended well, but not started.
  const [code] = await Promise.race([exited, delay(STOP_TIMEOUT_MS, [null], { ref: false })]);
  process.exitCode = code === null || code === 0 ? 1 : code;
  const isOfEngine = status === 'engine failed';
  const lines = isOfEngine
    ? (await engineFailures()).slice(-1)
    : await lastLines(logs.server, SHOWN_LOG_LINES, before.server);
  report(`error: the ${isOfEngine ? 'engine' : 'server'} did not start; the end of its log says:`);
  for (const line of lines) reportEntry(`  ${formatLogLine(line)}`);
  report(`  try: svc server start --help; svc ${isOfEngine ? 'engine' : 'server'} logs`);
  return undefined;
}

async function sizeOf(path: string): Promise<number> {
  return await stat(path).then(
    ({ size }) => size,
    () => 0,
  );
}

/** A fatal entry of our log, or an uncaught error as Node prints it. */
function isFatalEntry(line: string): boolean {
  return /^(?:\{"level":60,|\w*Error: )/.test(line);
}

/** The supervisor says so when there is no program to start. */
function isFailedStart(line: string): boolean {
  return line.includes('"msg":"the engine could not be started"');
}

/** Waits until the server can run sandboxes. When the time is up, a server that answers counts as started. */
async function waitForStatus(
  dataFolder: string,
  child: ChildProcess,
  hasOwnEngine: boolean,
  engineFailures: () => Promise<readonly string[]>,
): Promise<ServerStatus | 'engine failed' | undefined> {
  const { readStatus } = await import('@svc/server/admin');
  const deadline = performance.now() + START_TIMEOUT_MS;
  let status: ServerStatus | undefined;
  while (performance.now() < deadline && child.exitCode === null && child.signalCode === null) {
    // One that hangs is replaced.
    status = await readStatus(dataFolder).catch(() => undefined);
    if (status !== undefined && (status.engine.isHealthy || !hasOwnEngine)) return status;
    if (hasOwnEngine && (await engineFailures()).length > 0) return 'engine failed';
    await delay(POLL_MS);
  }
  return child.exitCode === null ? status : undefined;
}

/** In the foreground the server writes its log to our stderr, and gets our signals. */
async function runHere(place: Omit<StartedServer, 'status'>, options: readonly string[]): Promise<void> {
  // A supervisor gets the server itself, so that it sees how the server ends.
  if (!process.stderr.isTTY) await becomeServer(place.dataFolder, options);
  const child = await launch(place.dataFolder, options, ['ignore', 'inherit', 'inherit'], false);
  const ended = followToEnd(child);
  // For a person at a terminal; a log has the address already.
  if (process.stderr.isTTY) await announceWhenUp(place, child);
  const code = await ended;
  process.exitCode = code;
  const { EXIT } = await import('@svc/server/admin');
  if (code === EXIT.usage) report('  try: svc server start --help');
}

async function announceWhenUp(place: Omit<StartedServer, 'status'>, child: ChildProcess): Promise<void> {
  const { readStatus } = await import('@svc/server/admin');
  while (child.exitCode === null && child.signalCode === null) {
    const status = await readStatus(place.dataFolder).catch(() => undefined);
    if (status !== undefined) return await announceDashboard({ ...place, status }, process.stderr);
    await delay(POLL_MS);
  }
}

/** Does not come back. */
async function becomeServer(dataFolder: string, options: readonly string[]): Promise<void> {
  const { SERVER_MAIN } = await import('@svc/server/admin');
  process.chdir('/');
  // SAFETY: no shell; our own program with the operator's own options, as in `launch`.
  const words = [process.execPath, '--', SERVER_MAIN, '--path', dataFolder, ...options];
  process.execve?.(process.execPath, words);
}

async function launch(
  dataFolder: string,
  options: readonly string[],
  stdio: StdioOptions,
  detached: boolean,
): Promise<ChildProcess> {
  const { SERVER_MAIN } = await import('@svc/server/admin');
  // SAFETY: no shell; our own program with the operator's own options.
  const child = spawn(process.execPath, ['--', SERVER_MAIN, '--path', dataFolder, ...options], {
    stdio,
    detached,
    cwd: '/',
  });
  await once(child, 'spawn');
  return child;
}
