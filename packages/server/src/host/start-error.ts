import type { EXIT } from './exit-codes.ts';

/** Why the server cannot start, in words for the operator, and the code to exit with. */
export class StartError extends Error {
  readonly exitCode: number;

  constructor(exitCode: (typeof EXIT)[keyof typeof EXIT], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StartError';
    this.exitCode = exitCode;
  }
}
