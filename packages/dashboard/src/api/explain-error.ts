import { ERROR_DESCRIPTIONS } from '@svc/contract/error-descriptions';
import { isErrorCode } from '@svc/contract/errors';
import { SvcError } from '@svc/sdk';

/** A failure as the page shows it. */
export interface Explained {
  readonly code: string;
  readonly message: string;
  /** What to do about it; null: the message says it. */
  readonly remedy: string | null;
  /** The id of the request in the log of the server. */
  readonly requestId: string | null;
}

const OF_CLIENT: Readonly<Record<string, string>> = {
  connection_failed: 'The server does not answer. It may be restarting: this page tries again automatically.',
  timeout: 'It took too long. Try it again; what was begun may have been done.',
  aborted: 'It was cancelled.',
};

export function explainError(error: unknown): Explained {
  if (!SvcError.is(error)) {
    const message = error instanceof Error ? error.message : String(error);
    return { code: 'unexpected', message, remedy: 'Load the page again.', requestId: null };
  }
  const { code, message, requestId } = error;
  const remedy = isErrorCode(code) ? ERROR_DESCRIPTIONS[code] : (OF_CLIENT[code] ?? null);
  return { code, message, remedy: remedy === message ? null : remedy, requestId };
}

/** The invalid field that the server named; undefined: it named none. */
export function fieldOf(error: unknown): string | undefined {
  const field = SvcError.is(error) ? error.details?.['field'] : undefined;
  return typeof field === 'string' ? field : undefined;
}
