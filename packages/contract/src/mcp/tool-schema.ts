import type { Static, TObject, TSchema } from 'typebox';
import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';

/** Hints that a client may show its user before it calls a tool. */
export interface ToolHints {
  readonly readOnlyHint: boolean;
  readonly destructiveHint: boolean;
  readonly idempotentHint: boolean;
  /** It may reach the network, or run what does. */
  readonly openWorldHint: boolean;
}

/** Description, input and output of an MCP tool. */
export interface ToolSchema {
  readonly title: string;
  readonly description: string;
  readonly hints: ToolHints;
  readonly input: TObject;
  /**
   * The answer is printed output, the content of a file, or one sentence: it is sent as content only, with the fields of `output`
   * in `_meta.result`. Any other answer is structured content with a short text for people.
   */
  readonly isText?: true;
  readonly output: TObject;
}

export type ToolInput<T extends ToolSchema> = Static<T['input']>;
export type ToolOutput<T extends ToolSchema> = Static<T['output']>;

export const READS: ToolHints = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
};
/** Adds something; no existing data is lost. */
export const ADDS: ToolHints = { ...READS, readOnlyHint: false, idempotentHint: false };
/** Existing data may be lost; repeating the call changes nothing more. */
export const REPLACES: ToolHints = { ...READS, readOnlyHint: false, destructiveHint: true };
export const RUNS: ToolHints = {
  readOnlyHint: false,
  destructiveHint: true,
  idempotentHint: false,
  openWorldHint: true,
};

/** The output of a tool whose text is its whole answer. */
export const TextOnly = { isText: true, output: strictObject({}) } as const;

/** A field that may be left out may be null too: models send either. */
export function optional<T extends TSchema>(schema: T, description: string) {
  return Type.Optional(Type.Union([schema, Type.Null()], { description }));
}

export function nullable<T extends TSchema>(schema: T, description: string) {
  return Type.Union([schema, Type.Null()], { description });
}
