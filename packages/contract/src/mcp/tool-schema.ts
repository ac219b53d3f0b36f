import type { Static, TObject, TSchema } from 'typebox';
import { Type } from '../schema/type.ts';
import { strictObject } from '../spec/strict.ts';

/** What a client may tell its user before a tool is called. */
export interface ToolHints {
  readonly readOnlyHint: boolean;
  readonly destructiveHint: boolean;
  readonly idempotentHint: boolean;
  /** It may reach the network, or run what does. */
  readonly openWorldHint: boolean;
}

/** How a tool of MCP is shown to a model, what it takes and what it answers. */
export interface ToolSchema {
  readonly title: string;
  readonly description: string;
  readonly hints: ToolHints;
  readonly input: TObject;
  /**
   * Its answer is what something printed, what a file holds, or one sentence: it travels as content alone, and what `output` has
   * goes with it as `_meta.result`. Any other answer is structured content, with a short text for people.
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
/** Adds something; nothing that was there is lost. */
export const ADDS: ToolHints = { ...READS, readOnlyHint: false, idempotentHint: false };
/** What was there before may be lost; doing it again changes nothing more. */
export const REPLACES: ToolHints = { ...READS, readOnlyHint: false, destructiveHint: true };
export const RUNS: ToolHints = {
  readOnlyHint: false,
  destructiveHint: true,
  idempotentHint: false,
  openWorldHint: true,
};

/** Of a tool whose text says all there is to say. */
export const SentenceAlone = { isText: true, output: strictObject({}) } as const;

/** A field that may be left out may be null too: models send either. */
export function optional<T extends TSchema>(schema: T, description: string) {
  return Type.Optional(Type.Union([schema, Type.Null()], { description }));
}

export function nullable<T extends TSchema>(schema: T, description: string) {
  return Type.Union([schema, Type.Null()], { description });
}
