import { dirname } from 'node:path';
import { ChannelError } from '@svc/contract/channel';
import { isErrno } from '@svc/contract/errno';
import { PlatformError } from '@svc/contract/errors';
import { showJson, showLine, showLines } from '@svc/contract/visible';
import { SvcError } from '@svc/sdk';
import type { Command } from 'commander';
import type { SvcErrorCode } from '@svc/sdk';
import { InterruptedError } from './interrupted.ts';
import { toLimitLabels } from './limits.ts';
import { UsageError } from '../usage-error.ts';
import { painter } from './colours.ts';
import { reportDrawn } from './print.ts';
import { SILENT } from './silent-server.ts';
import { toCommandLineTerms, sandboxOf } from './command-line-terms.ts';

/** Prints what went wrong and the next command to type; returns the code to exit with. */
export function reportError(
  error: unknown,
  words: readonly string[],
  command: string | undefined,
  program: Command | undefined,
): number {
  const name = program === undefined ? undefined : sandboxOf(program);
  return reportFailure(error, { isJson: wantsJson(words), command, sandbox: name });
}

interface FailureContext {
  readonly isJson: boolean;
  /** The sandbox of the error. */
  readonly name?: string;
  /** The sandbox of the command line, which may differ from that of the error. */
  readonly sandbox?: string | undefined;
  /** The command that was typed. */
  readonly command?: string | undefined;
}

/** The same for one of several objects, with its name. */
export function reportFailure(error: unknown, { isJson, name, sandbox, command }: FailureContext): number {
  if (error instanceof InterruptedError) return error.exitCode;
  if (isJson) reportDrawn(showJson(JSON.stringify({ error: describe(error) })));
  else
    reportDrawn(
      `${painter(hasColours())('red', 'error').drawn}: ${showLines(toCommandLineTerms(sentence(error, name, command), name ?? sandbox))}`,
    );
  if (error instanceof UsageError) return 2;
  if (SvcError.is(error, 'exec_failed'))
    return error.details?.['kind'] === 'not_found' ? NOT_FOUND : NOT_EXECUTABLE;
  if (isOutOfMemory(error)) return KILLED;
  return RUN_PROCESSES.has(command ?? '') ? OURS : 1;
}

/** The kernel ended the sandbox, and with it the process. */
function isOutOfMemory(error: unknown): error is SvcError {
  return SvcError.is(error, 'sandbox_not_running') && error.details?.['reason'] === 'oom';
}

/** Commands whose exit code is that of a process, which may well be 1. */
const RUN_PROCESSES = new Set(['run', 'exec', 'code', 'attach']);
/** The exit code of shells and other container tools for this case. */
const NOT_FOUND = 127;
const NOT_EXECUTABLE = 126;
const OURS = 125;
/** 128 + SIGKILL. */
const KILLED = 137;

/** Colours for stderr. Does not read the configuration, which may be the cause of the error. */
function hasColours(): boolean {
  return process.stderr.isTTY && process.stderr.hasColors();
}

/** Reads the command line without its rules, because it may be the cause of the error. */
function wantsJson(words: readonly string[]): boolean {
  const end = words.indexOf('--');
  const options = end === -1 ? words : words.slice(0, end);
  return options.some(
    (word, index) =>
      ['-ojson', '--output=json'].includes(word) ||
      (word === 'json' && ['-o', '--output'].includes(options[index - 1] ?? '')),
  );
}

const NEXT_STEP: Partial<Record<SvcErrorCode, string>> = {
  connection_failed: 'svc server start --dev',
  // A server that started its engine itself restarts it.
  orchestrator_unreachable: 'the same in some seconds   # or, should it stay away: svc engine start --detach',
  invalid_api_key:
    'export SVC_API_KEY=$(svc server keygen --quiet)   # or: svc context add NAME --url URL --key-stdin',
  forbidden: 'svc context ls',
  not_found: 'svc exec NAME ls -la /',
  disk_full: 'svc exec NAME df -h /',
  insufficient_storage:
    'svc ps --all   # and remove what is not needed: svc rm, svc volume rm, svc image prune',
  sandbox_not_found: 'svc ps --all',
  process_not_found: 'svc process ls NAME',
  volume_not_found: 'svc volume ls',
  snapshot_not_found: 'svc snapshot ls',
  image_not_found: 'svc image ls',
  image_pull_failed: 'svc image build-demo   # makes python, node and base without a registry',
  isolation_unavailable: 'svc doctor',
  start_failed: 'svc logs --source system NAME',
  sandbox_not_running: 'svc start NAME',
  invalid_state_transition: 'svc ps --all',
  name_already_exists: 'svc ps --all',
  quota_exceeded: 'svc quota',
  volume_in_use: 'svc ps --all',
  snapshot_ineligible: 'svc start NAME',
  timeout: 'svc ps --all',
  internal: 'svc server logs',
};

function describe(error: unknown): object {
  if (SvcError.is(error) || PlatformError.is(error))
    return { code: error.code, message: error.message, details: error.details };
  const code = error instanceof UsageError ? 'invalid_request' : 'internal';
  return { code, message: messageOf(error), details: null };
}

function sentence(error: unknown, name: string | undefined, command: string | undefined): string {
  if (error instanceof UsageError) return error.message;
  if (SvcError.is(error, 'exec_failed')) return execSentence(error);
  if (error instanceof ChannelError) return `${messageOf(error)}\n  try: svc ps`;
  if (isForbidden(error)) return `${messageOf(error)}\n  try: the same command with sudo`;
  if (isOfThisMachine(error)) return `${messageOf(error)}\n  try: ls -ld ${showLine(dirname(error.path))}`;
  if (!SvcError.is(error) && !PlatformError.is(error)) return `${messageOf(error)}\n  try: svc doctor`;
  const next = nextStep(error, command) ?? (command === undefined ? 'svc --help' : `svc ${command} --help`);
  // Some messages contain the next step already.
  const message = toLimitLabels(messageOf(error), error.details);
  return /`svc |\n {2}try: /.test(message)
    ? message
    : `${message}\n  try: ${next.replace('NAME', name ?? nameIn(error))}`;
}

const VOLUME_FILES = 'svc volume cp VOLUME:/ FOLDER   # copies all that it holds';

/** States in which the host of the sandbox is away. A start would be refused, and the sandbox may still come back as it was. */
const AWAY: Readonly<Record<string, string>> = {
  temporarily_unavailable: 'the same in some seconds   # it goes on as it was when its host is back: svc ps',
  recovery_decision_required: 'svc recover NAME restart',
};

function nextStep(error: SvcError | PlatformError, command: string | undefined): string | undefined {
  if (isOutOfMemory(error)) return 'svc run -m 2G …   # a sandbox with more memory';
  if (error.details?.['missing'] === 'organization') return 'export SVC_ORG=SLUG   # or --org SLUG';
  if (isSilent(error)) return 'svc server logs   # to wait longer: --server-timeout 1m';
  if (isElsewhere(error)) return 'svc context ls';
  if (isBroken(error)) return 'svc ps --all';
  // Every error about a file.
  if (error.details?.['path'] !== undefined && error.code !== 'disk_full')
    return command === 'volume' ? VOLUME_FILES : NEXT_STEP.not_found;
  if (/ lets sandboxes mount /.test(error.message))
    return "svc server start --bind-root FOLDER   # on the server's machine";
  if (error.code === 'start_failed' && error.details?.['is_removed'] === true) return undefined;
  if (error.details?.['field'] === 'apiUrl') return 'export SVC_API_URL=http://127.0.0.1:5555';
  // A missing volume in a mount should be created; a missing volume in a removal has a wrong name.
  if (error.code === 'volume_not_found' && error.message.includes('create it first'))
    return 'svc volume create NAME';
  const away = AWAY[String(error.details?.['status'])];
  if (error.code === 'sandbox_not_running' && away !== undefined) return away;
  const [, taken] = /\b(volume|snapshot) (?:with|')/i.exec(error.message) ?? [];
  if (error.code === 'name_already_exists' && taken !== undefined) return `svc ${taken.toLowerCase()} ls`;
  // Files of volumes cannot be listed with a program.
  if (error.code === 'not_found' && command === 'volume') return VOLUME_FILES;
  return NEXT_STEP[error.code];
}

/** Messages put the name of their object in quotes, and those about files before a colon. */
function nameIn({ code, message }: SvcError | PlatformError): string {
  // The quoted name is that of the process, not of its sandbox.
  if (code === 'process_not_found') return 'NAME';
  return (/'([\w.-]+)'/.exec(message) ?? /^([\w.-]+):\//.exec(message))?.[1] ?? 'NAME';
}

/** The system denies access. */
function isForbidden(error: unknown): error is Error {
  return error instanceof Error && isErrno(error, 'EACCES', 'EPERM');
}

/** An error about a local file of a copy. */
function isOfThisMachine(error: unknown): error is Error & { readonly path: string } {
  return error instanceof Error && 'path' in error && typeof error.path === 'string';
}

/** A local server can be started; of a remote one only the address is known. */
function isElsewhere({ code, message }: SvcError | PlatformError): boolean {
  return (
    code === 'connection_failed' && /server at (?!(?:https?:\/\/)?(?:127\.|localhost|\[::1\]))/.test(message)
  );
}

/** The server accepts connections and does not answer. */
function isSilent({ code, message }: SvcError | PlatformError): boolean {
  return code === 'connection_failed' && message.includes(SILENT);
}

/** The connection broke during the call; the server may be back already. */
function isBroken({ code, message }: SvcError | PlatformError): boolean {
  return code === 'connection_failed' && !/cannot be reached/.test(message);
}

function execSentence(error: SvcError): string {
  const { kind, errno } = error.details ?? {};
  const message = messageOf(error);
  const reason = typeof errno === 'string' ? `${message} (${errno})` : message;
  return kind === 'not_found'
    ? `${reason}\n  commands come from the image; look around with: svc run -it IMAGE sh`
    : reason;
}

/**
 * Puts untrusted messages of a server, a sandbox or the system on one line, because further lines would look like ours. A system
 * error may contain a file name that a sandbox chose.
 */
function messageOf(error: unknown): string {
  const isQuoting = SvcError.is(error) || error instanceof ChannelError || isOfThisMachine(error);
  if (isQuoting) return showLine(error.message);
  return error instanceof Error ? error.message : String(error);
}
