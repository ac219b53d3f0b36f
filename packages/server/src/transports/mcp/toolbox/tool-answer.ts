import type { ContentBlock } from '@modelcontextprotocol/sdk/types.js';
import type { WorkToolInput, WorkToolName, WorkToolOutput } from '@svc/contract/mcp';
import type { ToolContext } from './tool-context.ts';

/** The answer of a tool: `output` according to its schema, and the text for people and models. */
export interface ToolAnswer<Output> {
  readonly structured: Output;
  readonly text: string;
  /** Content blocks after the text. */
  readonly more?: readonly ContentBlock[];
}

export type WorkToolHandler<Name extends WorkToolName> = (
  input: WorkToolInput<Name>,
  context: ToolContext,
) => Promise<ToolAnswer<WorkToolOutput<Name>>>;

export type WorkToolHandlers = { readonly [Name in WorkToolName]: WorkToolHandler<Name> };
