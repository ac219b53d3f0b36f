import { ChannelError, ExecFailed, type ChannelClient, type ChannelFiles } from '@svc/contract';
import { boundedBy } from '../../../processes/explain-failure.ts';
import { auditedCommand } from '../../../processes/shown-command.ts';
import { pathFor, type Account } from './accounts.ts';
import { ConnectError } from '../wire/connect-error.ts';
import type { EnvdCall } from './envd-call.ts';
import { withKeepAlive } from './keep-alive.ts';
import {
  booleanIn,
  bytesIn,
  mapIn,
  messageIn,
  textIn,
  textsIn,
  wholeIn,
  type Message,
} from './message-fields.ts';
import { closeAfter, openOwn, type OwnChannel } from './own-channel.ts';
import { endOf, processEvents, timedOut, type ProcessEvent } from './process-events.ts';
import {
  isProcessKey,
  newProcessKey,
  processNotFound,
  requireProcess,
  tagOf,
  takesStdin,
} from './process-key.ts';

const SIGKILL = 9;
const SIGTERM = 15;
const SIGNALS: Readonly<Record<string, number>> = { SIGNAL_SIGKILL: SIGKILL, SIGNAL_SIGTERM: SIGTERM };
const BY = 'e2b';
/** An ended process can be connected to for this long. */
const KEEP_ENDED_MS = 30_000;
const DEFAULT_SIZE = { cols: 80, rows: 24 };

interface StreamMessage {
  readonly event: ProcessEvent;
}

type Stream = AsyncGenerator<StreamMessage, void>;

export async function* start(call: EnvdCall, message: Message): Stream {
  const config = messageIn(message, 'process') ?? {};
  const opening = openOwn(call);
  // It is awaited when the process has started; until then its failure must not be unhandled.
  opening.catch(() => undefined);
  try {
    yield* startOver(call, message, { config, opening });
  } finally {
    // Unless it was left to the next reader.
    opening.then((own) => own.close()).catch(() => undefined);
  }
}

async function* startOver(
  call: EnvdCall,
  message: Message,
  { config, opening }: { readonly config: Message; readonly opening: Promise<OwnChannel> },
): Stream {
  const account = await call.account();
  const pty = messageIn(message, 'pty');
  const hasStdin = pty !== undefined || booleanIn(message, 'stdin', true);
  const key = newProcessKey({ tag: textIn(message, 'tag'), hasStdin });
  const [cmd, args] = [textIn(config, 'cmd'), textsIn(config, 'args')];
  const given = textIn(config, 'cwd');
  const cwd = given === '' ? account.home : pathFor(account, given);
  const request = {
    key,
    cmd,
    args,
    env: { ...accountEnv(call, account), ...mapIn(config, 'envs') },
    cwd,
    user: account.name,
    stdin: hasStdin,
    timeoutMs: call.timeoutMs,
    ...(pty === undefined ? {} : { tty: true, ...sizeOf(pty) }),
  };
  const audit = noteStart(call, {
    command: auditedCommand([cmd, ...args]),
    user: account.name,
    tty: pty !== undefined,
  });
  const own = await opening;
  const { detached } = own.channel;
  const starting = detached.start(request, boundedBy(call.signal));
  // Sent behind the start, not after its answer: that saves a round trip.
  const events = processEvents(own.channel, { key, isTty: pty !== undefined }, { stdout: 0, stderr: 0 });
  const { pid } = await starting.catch((error: unknown) => explain(error, cwd));
  audit.catch(() => detached.signal(key, SIGKILL, BY).catch(() => undefined));
  yield { event: { start: { pid } } };
  yield* follow(call, own, key, events);
}

/** Output from now on; what was written before is not repeated. */
export async function* connect(call: EnvdCall, message: Message): Stream {
  const pooled = await call.channel();
  const state = await requireProcess(pooled, message, { mayHaveEnded: true, signal: boundedBy(call.signal) });
  yield { event: { start: { pid: state.pid } } };
  if (state.end !== null) {
    yield { event: { end: endOf(state) } };
    return;
  }
  const own = await openOwn(call);
  const from = { stdout: state.stdout.to, stderr: state.stderr.to };
  using deadline = closeAfter(own, call.timeoutMs);
  try {
    yield* follow(
      call,
      own,
      state.key,
      processEvents(own.channel, { key: state.key, isTty: state.tty }, from),
    );
  } catch (error) {
    throw deadline.isOver() ? timedOut() : error;
  } finally {
    own.close();
  }
}

export async function list(call: EnvdCall): Promise<object> {
  const { detached, files } = await call.channel();
  const running = (await detached.list(boundedBy(call.signal))).filter(
    ({ key, end }) => isProcessKey(key) && end === null,
  );
  const processes = running.map(async ({ key, pid }) => {
    const tag = tagOf(key);
    const config = await configOf(files, pid, call.signal);
    return { config, pid, ...(tag === '' ? {} : { tag }) };
  });
  return { processes: await Promise.all(processes) };
}

export async function sendInput(call: EnvdCall, message: Message): Promise<object> {
  const channel = await call.channel();
  const state = await requireProcess(channel, message, { signal: boundedBy(call.signal) });
  await writeInput(channel, state, messageIn(message, 'input') ?? {}, call.signal);
  return {};
}

/** Input to one process, message by message, over one request. */
export async function streamInput(call: EnvdCall, messages: AsyncIterable<Message>): Promise<object> {
  const channel = await call.channel();
  let state: Awaited<ReturnType<typeof requireProcess>> | undefined;
  for await (const message of messages) {
    const [begin, data] = [messageIn(message, 'start'), messageIn(message, 'data')];
    if (begin !== undefined) state = await requireProcess(channel, begin, { signal: boundedBy(call.signal) });
    if (data === undefined) continue;
    if (state === undefined) throw new ConnectError('invalid_argument', 'start must come before data');
    await writeInput(channel, state, messageIn(data, 'input') ?? {}, call.signal);
  }
  return {};
}

export async function closeStdin(call: EnvdCall, message: Message): Promise<object> {
  const channel = await call.channel();
  const { key } = await requireProcess(channel, message, { signal: boundedBy(call.signal) });
  // Closed already: it stays closed.
  await channel.detached.closeStdin(key, boundedBy(call.signal)).catch(ignoreRefusal);
  return {};
}

export async function update(call: EnvdCall, message: Message): Promise<object> {
  const channel = await call.channel();
  const { key } = await requireProcess(channel, message, { signal: boundedBy(call.signal) });
  const pty = messageIn(message, 'pty');
  if (pty === undefined) return {};
  const { rows, cols } = sizeOf(pty);
  await channel.detached.resize(key, rows, cols, boundedBy(call.signal));
  return {};
}

export async function sendSignal(call: EnvdCall, message: Message): Promise<object> {
  const name = textIn(message, 'signal');
  const number = SIGNALS[name];
  if (number === undefined)
    throw new ConnectError('invalid_argument', `signal must be one of ${Object.keys(SIGNALS).join(', ')}`);
  const channel = await call.channel();
  const { key } = await requireProcess(channel, message, { signal: boundedBy(call.signal) });
  await channel.detached.signal(key, number, BY, boundedBy(call.signal)).catch((error: unknown) => {
    // It has exited since it was found.
    throw error instanceof ChannelError && error.kind === 'refused' ? processNotFound(message) : error;
  });
  return {};
}

async function* follow(
  call: EnvdCall,
  own: OwnChannel,
  key: string,
  events: ReturnType<typeof processEvents>,
): Stream {
  const beat = { keepalive: {} };
  try {
    for await (const event of withKeepAlive<ProcessEvent>(events, { everyMs: call.keepAliveMs, beat }))
      yield { event };
    own.keep();
  } finally {
    forgetLater(call, key);
  }
}

/** Frees what the sandbox keeps of an ended process; one that runs on is kept. */
function forgetLater(call: EnvdCall, key: string): void {
  const forget = async () => {
    const { detached } = await call.channel();
    const state = (await detached.list()).find((each) => each.key === key);
    if (state?.end !== null) await detached.forget(key);
  };
  // A sandbox that has ended keeps nothing.
  setTimeout(() => void forget().catch(() => undefined), KEEP_ENDED_MS).unref();
}

async function writeInput(
  { detached }: ChannelClient,
  { key, tty }: { readonly key: string; readonly tty: boolean },
  input: Message,
  signal: AbortSignal,
): Promise<void> {
  const field = tty ? 'pty' : 'stdin';
  if (input[field] === undefined && Object.keys(input).length > 0)
    throw new ConnectError('internal', `the process takes ${field}`);
  if (!takesStdin(key)) throw noStdin();
  const data = bytesIn(input, field);
  // No bytes would close the input.
  if (data.length === 0) return;
  await detached.writeStdin(key, data, signal).catch((error: unknown) => {
    throw error instanceof ChannelError && error.kind === 'refused' ? noStdin() : error;
  });
}

function noStdin(): ConnectError {
  return new ConnectError('internal', 'stdin not enabled or closed');
}

function ignoreRefusal(error: unknown): void {
  if (!(error instanceof ChannelError && error.kind === 'refused')) throw error;
}

/** What a login would set; the environment of the sandbox comes before it. */
function accountEnv(call: EnvdCall, { name, home }: Account): Record<string, string> {
  const own = new Set((call.of.sandbox.spec.env ?? []).map(({ key }) => key));
  const all = { HOME: home, USER: name, LOGNAME: name };
  return Object.fromEntries(Object.entries(all).filter(([key]) => !own.has(key)));
}

function sizeOf(pty: Message): { readonly rows: number; readonly cols: number } {
  const size = messageIn(pty, 'size') ?? {};
  const [rows, cols] = [wholeIn(size, 'rows'), wholeIn(size, 'cols')];
  return { rows: rows === 0 ? DEFAULT_SIZE.rows : rows, cols: cols === 0 ? DEFAULT_SIZE.cols : cols };
}

function explain(error: unknown, cwd: string): never {
  if (!(error instanceof ExecFailed)) throw error;
  const message = error.kind === 'bad_cwd' ? `cwd '${cwd}' does not exist` : error.message;
  const code =
    error.kind === 'resource_limit' || error.kind === 'out_of_memory'
      ? 'resource_exhausted'
      : 'invalid_argument';
  throw new ConnectError(code, message, { cause: error });
}

/** As the process itself shows it: what it was started with may have been replaced since. */
async function configOf(files: ChannelFiles, pid: number, signal: AbortSignal): Promise<object> {
  const [words, cwd] = await Promise.all([
    files.readFile(`/proc/${pid}/cmdline`, {}, signal).catch(() => undefined),
    files.readLink(`/proc/${pid}/cwd`, signal).catch(() => undefined),
  ]);
  const [cmd = '', ...args] = Buffer.from(words ?? [])
    .toString('utf8')
    .replace(/\0$/, '')
    .split('\0');
  return { cmd, args, envs: {}, ...(cwd === undefined ? {} : { cwd }) };
}

/** Written beside the start; a process whose start cannot be recorded is killed. */
async function noteStart(
  { of: { sandbox, authority, call }, parts }: EnvdCall,
  exec: { readonly command: string; readonly user: string; readonly tty: boolean },
): Promise<void> {
  await parts.events.append({
    organizationId: authority.organization.id,
    type: 'exec_started',
    category: 'exec',
    actor: authority.actor,
    payload: { sandbox_id: sandbox.id, sandbox_name: sandbox.name, ...exec },
    requestId: call.requestId,
    sourceAddress: call.sourceAddress,
  });
}
