import { PlatformError } from '@svc/contract';
import type { Interpreter, UnitOutcome } from './interpreter.ts';
import type { Interruption } from './interruption.ts';
import { closedNote, describeEnd, INTERRUPTED_NOTE, KILLED_NOTE, timeoutNote } from './notes.ts';
import type { ResultReader } from './result-reader.ts';
import type { CodeResult, SlotRequest } from './slot-request.ts';

/** The outcome of code that has ended. */
export interface Ran {
  readonly interpreter: Interpreter;
  readonly outcome: UnitOutcome;
  readonly interruption: Interruption;
  readonly endNote: string;
  readonly request: SlotRequest;
  readonly results: ResultReader;
}

/**
 * Builds the result of a run for its caller and its listener. `explainLoss`: finds out why the connection broke. `reportsEnd`: the result
 * reports that its interpreter has ended or was given up.
 */
export async function summarize(
  ran: Ran,
  explainLoss: () => Promise<unknown>,
): Promise<{ readonly result: CodeResult; readonly reportsEnd: boolean }> {
  const { interpreter, outcome, interruption, endNote, request, results } = ran;
  const { listener, wasInterrupted } = request;
  const { end, lostStreams, stdout, stderr, result, exception, executionCount } = outcome;
  const notes: string[] = [];
  let isFailure = end !== 'success';
  if (end === 'forgotten') throw forgotten();
  if (end === 'ended') {
    const how = await interpreter.ended;
    if (how.kind === 'lost') throw await explainLoss();
    isFailure = how.exit.reason !== 'exit' || how.exit.code !== 0;
    notes.push(interruption.hasKilled ? KILLED_NOTE : describeEnd(how));
  }
  if (lostStreams.length > 0) notes.push(closedNote(lostStreams));
  const { timeoutMs } = interruption;
  if (timeoutMs !== null) notes.unshift(timeoutNote(timeoutMs, notes.length === 0));
  const isOther = end === 'interrupted' && timeoutMs === null;
  const isInterrupted = isOther && (await wasInterrupted?.()) === true;
  if (isInterrupted) notes.unshift(INTERRUPTED_NOTE);
  listener?.note(notes.join(''));
  listener?.ended({ result, exception, executionCount, isInterrupted, isTruncated: results.isTruncated });
  const reportsEnd = end === 'ended' || lostStreams.length > 0;
  const answer: CodeResult = {
    status: timeoutMs !== null ? 'timeout' : isFailure ? 'error' : 'success',
    output: stdout.text,
    error: joinLines(endNote, stderr.text, ...notes),
    truncated: stdout.isTruncated || stderr.isTruncated,
  };
  return { result: answer, reportsEnd };
}

function forgotten(): PlatformError {
  const message =
    'The code of this Idempotency-Key was run, and so much was printed since that nothing of its outcome is kept; to run it again use a new key';
  return new PlatformError('idempotency_conflict', message);
}

/** Each part begins on a line of its own. */
function joinLines(...parts: readonly string[]): string {
  return parts
    .filter((part) => part !== '')
    .map((part, index, all) => (index < all.length - 1 && !part.endsWith('\n') ? `${part}\n` : part))
    .join('');
}
