import { explainError } from '../api/explain-error.ts';
import { Button } from './Button.tsx';

interface FailureProps {
  readonly error: unknown;
  readonly onRetry?: () => void;
}

/** A failure with its code and what to do about it. */
export function Failure({ error, onRetry }: FailureProps) {
  const { code, message, remedy, requestId } = explainError(error);
  return (
    <div className="failure" role="alert">
      <p>
        <code className="code">{code}</code> {message}
      </p>
      {remedy === null ? null : <p className="remedy">{remedy}</p>}
      {requestId === null ? null : (
        <p className="hint">
          Request <code>{requestId}</code>
        </p>
      )}
      {onRetry === undefined ? null : (
        <Button icon="refresh" onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}
