import { SvcError } from '../svc-error.ts';

/** The signals of Linux that programs are sent, by their names. */
const SIGNALS = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGKILL: 9,
  SIGUSR1: 10,
  SIGUSR2: 12,
  SIGTERM: 15,
  SIGCONT: 18,
  SIGSTOP: 19,
  SIGTSTP: 20,
  SIGWINCH: 28,
} as const;

/** A name, or a number for the others. */
export type Signal = keyof typeof SIGNALS | number;

const MAX_SIGNAL = 64;

/** @throws SvcError `invalid_request` */
export function signalNumber(signal: Signal): number {
  const number = typeof signal === 'number' ? signal : SIGNALS[signal];
  if (Number.isInteger(number) && number >= 1 && number <= MAX_SIGNAL) return number;
  throw new SvcError('invalid_request', `There is no signal ${signal}`, { details: { field: 'signal' } });
}
