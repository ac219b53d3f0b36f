import { parseBoundedJson } from '@svc/contract/bounded-json';
import { PlatformError } from '@svc/contract';

const MAX_NAME_LENGTH = 64;

/** Globally unique name of a run: its connection and its number there. */
export interface RunName {
  readonly connection: string;
  readonly id: number;
}

export interface RunMessage {
  readonly kind: 'run';
  readonly id: number;
  /** The body of the request, not validated yet. */
  readonly run: unknown;
  /** The run of a broken connection that this message repeats. */
  readonly again: RunName | undefined;
}

/** A message of a client on a connection for code. */
export type CodeMessage = RunMessage | { readonly kind: 'cancel'; readonly id: number };

/** A message without the id of a run, which therefore cannot be answered. */
export class CodeMessageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CodeMessageError';
  }
}

/** @throws CodeMessageError */
export function readCodeMessage(bytes: Uint8Array): CodeMessage {
  const { id, run, again, cancel, ...others } = readObject(bytes);
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw new CodeMessageError(`a message has no field ${unknown.slice(0, 40)}`);
  if (!isNumber(id)) throw new CodeMessageError('id must be a whole number from 1 on');
  if (cancel !== undefined) {
    if (cancel !== true || run !== undefined || again !== undefined)
      throw new CodeMessageError('cancel must be true, beside id alone');
    return { kind: 'cancel', id };
  }
  if (run === undefined) throw new CodeMessageError('a message must have run or cancel beside its id');
  return { kind: 'run', id, run, again: again === undefined ? undefined : readName(again) };
}

function readObject(bytes: Uint8Array): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = parseBoundedJson(bytes);
  } catch (error) {
    throw new CodeMessageError(
      PlatformError.is(error) ? error.message : 'a message must be JSON in UTF-8, one object',
    );
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new CodeMessageError('a message must be JSON in UTF-8, one object');
  return value as Readonly<Record<string, unknown>>;
}

function readName(again: unknown): RunName {
  const { connection, id, ...others } = (again ?? {}) as Readonly<Record<string, unknown>>;
  const isName = typeof connection === 'string' && connection !== '' && connection.length <= MAX_NAME_LENGTH;
  if (!isName || !isNumber(id) || Object.keys(others).length > 0)
    throw new CodeMessageError(
      'again must have the connection and the id of the run that is asked for again',
    );
  return { connection, id };
}

function isNumber(id: unknown): id is number {
  return typeof id === 'number' && Number.isSafeInteger(id) && id >= 1;
}
