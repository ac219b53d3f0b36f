import { ChannelError, ExecFailed } from '@svc/contract/channel';
import { PlatformError } from '@svc/contract/errors';
import type { ErrorCode } from '@svc/contract/errors';
import { UsageError } from '../usage-error.ts';
import { painter } from './colours.ts';
import { tell } from './print.ts';

/** Prints what went wrong and the next command to type; returns the code to exit with. */
export function reportError(error: unknown, words: readonly string[]): number {
  if (wantsJson(words)) tell(JSON.stringify({ error: describe(error) }));
  else tell(`${painter(process.stderr.isTTY)('red', 'error')}: ${sentence(error)}`);
  if (error instanceof UsageError) return 2;
  if (error instanceof ExecFailed) return EXIT_OF_EXEC_FAILURE[error.kind] ?? 1;
  return 1;
}

/** The command line may be the very thing that is wrong, so it is read here without its rules. */
function wantsJson(words: readonly string[]): boolean {
  const end = words.indexOf('--');
  const options = end === -1 ? words : words.slice(0, end);
  return options.some(
    (word, index) =>
      ['-ojson', '--output=json'].includes(word) ||
      (word === 'json' && ['-o', '--output'].includes(options[index - 1] ?? '')),
  );
}

/** What a shell says in these cases. */
const EXIT_OF_EXEC_FAILURE: Partial<Record<ExecFailed['kind'], number>> = {
  not_found: 127,
  permission_denied: 126,
  not_executable: 126,
};

const NEXT_STEP: Partial<Record<ErrorCode, string>> = {
  orchestrator_unreachable: 'svc engine start --detach',
  sandbox_not_found: 'svc ls',
  image_not_found: 'svc image ls',
  image_pull_failed: 'svc image build-demo   # makes python, node and base without a registry',
  isolation_unavailable: 'svc doctor',
  start_failed: 'svc doctor',
  sandbox_not_running: 'svc start NAME',
  name_already_exists: 'svc ls',
  internal: 'svc engine logs',
};

function describe(error: unknown): object {
  if (PlatformError.is(error)) return { code: error.code, message: error.message, details: error.details };
  if (error instanceof ExecFailed)
    return { code: 'start_failed', message: error.message, details: { kind: error.kind } };
  const code = error instanceof UsageError ? 'invalid_request' : 'internal';
  return { code, message: messageOf(error), details: null };
}

function sentence(error: unknown): string {
  if (error instanceof UsageError) return error.message;
  if (error instanceof ExecFailed) return execSentence(error);
  if (error instanceof ChannelError) return `${error.message}\n  try: svc ls`;
  if (!PlatformError.is(error)) return `${messageOf(error)}\n  try: svc doctor`;
  const next = NEXT_STEP[error.code];
  // Some sentences say it themselves.
  return next === undefined || error.message.includes('`svc ')
    ? error.message
    : `${error.message}\n  try: ${next}`;
}

function execSentence({ message, errnoName, kind }: ExecFailed): string {
  const reason = errnoName === null ? message : `${message} (${errnoName})`;
  return kind === 'not_found'
    ? `${reason}\n  commands come from the image; look around with: svc run -it IMAGE -- sh`
    : reason;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
