import { PlatformError } from '@svc/contract/errors';
import { HostCallError } from '../host/host-calls.ts';
import type { RuntimeSpec } from './runtime.ts';

/** The evidence about a failed start. */
export interface StartEvidence {
  /** Null when the program could not be executed at all. */
  readonly exitCode: number | null;
  /** The runtime's log, JSON lines. */
  readonly log: string;
  readonly cause?: unknown;
}

/** The error for a failed start: it names the cause and contains no host paths, token or configuration of the sandbox. */
export function startFailure(runtime: string, spec: RuntimeSpec, evidence: StartEvidence): PlatformError {
  const message = lastComplaint(evidence.log);
  const reason = presentable(message ?? unexplained(runtime, evidence), spec);
  return new PlatformError('start_failed', `${runtime} could not start the sandbox: ${reason}`, {
    details: { runtime, reason, exitCode: evidence.exitCode },
    cause: evidence.cause ?? new Error(withoutSecrets(message ?? evidence.log, spec)),
  });
}

function unexplained(runtime: string, { exitCode, cause }: StartEvidence): string {
  // 127 comes from the shell that wraps some runtimes.
  const errno = cause instanceof HostCallError ? cause.errno : undefined;
  if (exitCode === 127 || errno === 'ENOENT') return `the program is not installed; install ${runtime}`;
  if (errno === 'ECHILD' || errno === 'ETIMEDOUT') return 'its helper svc-host ended meanwhile; try again';
  if (exitCode === null) return 'the program cannot be executed';
  if (exitCode === 0) return 'PID 1 ended at once';
  return `it ended with exit code ${exitCode} and left no message`;
}

/** The message of the last error in a log of JSON lines. */
export function lastComplaint(log: string): string | undefined {
  return (
    log
      // runsc writes its entries without line breaks between them.
      .replaceAll('}{', '}\n{')
      .split('\n')
      .map(complaintIn)
      .findLast((message) => message !== undefined)
  );
}

function complaintIn(line: string): string | undefined {
  let entry: unknown;
  try {
    entry = JSON.parse(line);
  } catch {
    // A truncated line is ignored.
    return undefined;
  }
  if (typeof entry !== 'object' || entry === null) return undefined;
  const { level, msg } = entry as { level?: unknown; msg?: unknown };
  return (level === 'error' || level === 'fatal') && typeof msg === 'string' ? msg : undefined;
}

const LONGEST_REASON = 500;

/** A runtime may quote its whole configuration: keeps one line, up to the first quoted document. */
function presentable(text: string, spec: RuntimeSpec): string {
  const [line = ''] = text.trim().split('\n');
  const [sentence = ''] = line.split(/[:,]?\s*[&{[]+\s*"?\w+"?:/);
  return withoutHostPaths(withoutSecrets(sentence, spec), spec).slice(0, LONGEST_REASON);
}

function withoutSecrets(text: string, spec: RuntimeSpec): string {
  return text.replaceAll(spec.initToken, '(token)');
}

function withoutHostPaths(text: string, spec: RuntimeSpec): string {
  const known: readonly (readonly [string, string])[] = [
    [spec.rootfs, '(root)'],
    [spec.guestFolder, '(guest folder)'],
    [spec.slot.userNamespace, '(user namespace)'],
    [spec.slot.networkNamespace, '(network namespace)'],
    ...spec.mounts.map((mount) => [mount.source ?? '', `(source of ${mount.destination})`] as const),
  ];
  return known
    .filter(([path]) => path !== '')
    .toSorted(([a], [b]) => b.length - a.length)
    .reduce((shown, [path, name]) => shown.replaceAll(path, name), text);
}
