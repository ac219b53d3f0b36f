import type { IncomingMessage } from 'node:http';
import { isErrorCode, PlatformError } from '@svc/contract/errors';
import type { EngineAddress, TcpAddress } from './engine-address.ts';

/** @throws PlatformError with the engine's own code and message */
export function checkAnswer(response: IncomingMessage, text: string): void {
  if (response.statusCode !== undefined && response.statusCode < 300) return;
  const parsed: unknown = safeParse(text);
  if (isEnvelope(parsed)) throw asError(parsed.error);
  throw new PlatformError('internal', `the engine answered ${response.statusCode} without a reason`);
}

export function asError(error: {
  readonly code: string;
  readonly message: string;
  readonly details: unknown;
}): PlatformError {
  const code = isErrorCode(error.code) ? error.code : 'internal';
  const details = typeof error.details === 'object' && error.details !== null ? { ...error.details } : {};
  return new PlatformError(code, error.message, { details });
}

export async function* readLines<Line>(response: IncomingMessage): AsyncGenerator<Line> {
  if (response.statusCode !== 200) checkAnswer(response, await readText(response));
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of wholeBody(response)) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) yield JSON.parse(line) as Line;
  }
}

/** Reads the body to its end; a truncated body is an error. */
export async function* wholeBody(response: IncomingMessage): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of response) yield chunk as Uint8Array;
  } catch (error) {
    throw error instanceof Error && error.name === 'AbortError' ? error : cutOff(error);
  }
  if (!response.complete) throw cutOff();
}

export async function readText(response: IncomingMessage): Promise<string> {
  return Buffer.concat(await Array.fromAsync(wholeBody(response))).toString('utf8');
}

export function cutOff(cause?: unknown): PlatformError {
  const message = 'the engine ended the connection before it had answered';
  return new PlatformError('orchestrator_unreachable', message, { cause });
}

export function unreachable(error: NodeJS.ErrnoException, address: EngineAddress): Error {
  if (error.name === 'AbortError') return error;
  const hint = 'socketPath' in address ? hintOf(error) : remoteHintOf(error, address);
  return new PlatformError('orchestrator_unreachable', hint, {
    details: { errno: error.code ?? error.message },
    cause: error,
  });
}

function hintOf({ code, message }: NodeJS.ErrnoException): string {
  if (code === undefined) return `the engine hangs: ${message}; see \`svc engine logs\``;
  // Starting an engine would not help: it may be running under another user.
  if (code !== 'EACCES') return 'the engine cannot be reached; start it with `svc engine start`';
  const [uid, gid] = [process.getuid?.(), process.getgid?.()];
  return `the engine's socket is not for user ${uid}; start the engine with \`svc engine start --socket-owner ${uid}:${gid}\`, or a server as whom the socket belongs to, with --run-as`;
}

const REFUSED_CERTIFICATE = /CERT|SIGNATURE|PURPOSE|^ERR_SSL_|^EPROTO$/;

function remoteHintOf({ code, message }: NodeJS.ErrnoException, { host, port }: TcpAddress): string {
  const place = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  if (code === undefined) return `the engine at ${place} hangs: ${message}`;
  if (code === 'ECONNRESET')
    return `the engine at ${place} closed the connection: it was stopped, or refuses this server's certificate, as its log says`;
  if (REFUSED_CERTIFICATE.test(code))
    return `the engine at ${place} has a certificate that cannot be used (${code}): ${message}`;
  return `the engine at ${place} cannot be reached (${code})`;
}

function safeParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON: the caller reports the status instead.
    return undefined;
  }
}

function isEnvelope(value: unknown): value is { error: { code: string; message: string; details: unknown } } {
  return (
    typeof value === 'object' &&
    value !== null &&
    'error' in value &&
    typeof value.error === 'object' &&
    value.error !== null
  );
}
