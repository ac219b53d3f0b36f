import type { EXIT } from './exit-codes.ts';

/** Why the server cannot start, as a message for the operator, with the exit code. */
export class StartError extends Error {
  readonly exitCode: number;

  constructor(exitCode: (typeof EXIT)[keyof typeof EXIT], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StartError';
    this.exitCode = exitCode;
  }
}
