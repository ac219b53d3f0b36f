import { constants } from 'node:os';
import { InvalidArgumentError } from 'commander';

/** `TERM`, `SIGTERM`, `term` or `15`: the name without `SIG`. */
export function parseSignal(text: string): string {
  const wanted = text.toUpperCase().replace(/^SIG/, '');
  const found = Object.entries(constants.signals).find(
    ([name, number]) => name === `SIG${wanted}` || String(number) === text,
  );
  if (found === undefined) throw new InvalidArgumentError('Give a signal, such as TERM, SIGHUP or 9.');
  return found[0].replace(/^SIG/, '');
}
