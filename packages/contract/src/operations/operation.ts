import type { Static, TSchema } from 'typebox';
import type { ErrorCode } from '../errors.ts';

/**
 * Who may call an operation.
 * - `anyone`: no credential is asked for.
 * - `namespace`: a credential that reaches the `namespace` of the input.
 * - `reach`: any valid credential; the answer is limited to the namespaces it reaches, and `*` names them all.
 */
export type Access = 'anyone' | 'namespace' | 'reach';

/** One thing that callers can ask for, whichever way they come in. */
export interface Operation<Input extends TSchema = TSchema, Output extends TSchema = TSchema> {
  readonly summary: string;
  readonly access: Access;
  readonly input: Input;
  readonly output: Output;
  /** What it may fail with beside what every operation may: a bad input, a bad credential, a bug. */
  readonly errors: readonly ErrorCode[];
}

export type InputOf<O extends Operation> = Static<O['input']>;
export type OutputOf<O extends Operation> = Static<O['output']>;
