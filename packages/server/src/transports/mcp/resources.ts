import type { Server } from '@modelcontextprotocol/sdk/server/index.js';
import {
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  McpError,
  ReadResourceRequestSchema,
  type ReadResourceResult,
  type ResourceTemplate,
} from '@modelcontextprotocol/sdk/types.js';
import { nameProblem, PlatformError } from '@svc/contract';
import { requireReach, type Caller } from '../../access/caller.ts';
import { callerOf, type ToolExtra } from './caller-info.ts';
import { inWordsOfTools } from './next-step.ts';
import { FILE_TEMPLATE, readFileUri, type FileAddress } from './toolbox/resource-uri.ts';
import { kindOf } from './toolbox/file-content.ts';
import { ToolContext, type ToolCaller, type Workbench } from './toolbox/tool-context.ts';

/** The protocol's error code for an unknown resource. */
const RESOURCE_NOT_FOUND = -32_002;
const INVALID_PARAMS = -32_602;
const INTERNAL_ERROR = -32_603;
/** Maximum size of a file; it is held in memory. */
const MAX_BYTES = 16 * 1024 * 1024;

const TEMPLATE: ResourceTemplate = {
  uriTemplate: FILE_TEMPLATE,
  name: 'sandbox_file',
  title: 'A file of a running sandbox',
  description:
    'name: the sandbox; path: of the file, without the first slash; namespace: default unless given. Text in UTF-8 comes as text, ' +
    `anything else as a blob; up to ${MAX_BYTES / 1024 / 1024} MiB.`,
};

/**
 * Serves files of sandboxes as resources. They are not listed, because there are too many: tools return links, and
 * the template describes the addresses.
 */
export function serveResources(
  server: Server,
  bench: Workbench,
  within: <T>(extra: ToolExtra, work: (call: ToolCaller) => Promise<T>) => Promise<T>,
): void {
  server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources: [] }));
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: [TEMPLATE] }));
  server.setRequestHandler(ReadResourceRequestSchema, async ({ params }, extra) => {
    const address = readFileUri(params.uri);
    if (address === undefined) {
      const message = `There is no resource ${params.uri}; those of files are ${FILE_TEMPLATE}`;
      throw new McpError(RESOURCE_NOT_FOUND, message, { uri: params.uri });
    }
    try {
      return await within(extra, (call) => readResource(bench, address, params.uri, call));
    } catch (error) {
      throw explain(error, params.uri, callerOf(extra.authInfo).caller);
    }
  });
}

async function readResource(
  bench: Workbench,
  address: FileAddress,
  uri: string,
  call: ToolCaller,
): Promise<ReadResourceResult> {
  const bytes = await readBytes(bench, address, call);
  const { isText, mimeType } = kindOf(address.path, bytes);
  const text = isText ? decode(bytes) : undefined;
  const content =
    text === undefined ? { uri, mimeType, blob: bytes.toString('base64') } : { uri, mimeType, text };
  return { contents: [content] };
}

function explain(error: unknown, uri: string, caller: Caller): unknown {
  if (!PlatformError.is(error)) return error;
  const data = { code: error.code, ...error.details };
  return new McpError(codeOf(error), inWordsOfTools(error.message, data, caller), { uri, ...data });
}

async function readBytes(bench: Workbench, address: FileAddress, call: ToolCaller): Promise<Buffer> {
  const { namespace, sandbox, path } = address;
  for (const [field, problem] of [
    ['name', nameProblem('Sandbox name', sandbox)],
    ['namespace', nameProblem('Namespace', namespace)],
    ['path', path.includes('\0') ? 'path must not contain NUL' : undefined],
  ] as const) {
    if (problem !== undefined) throw new PlatformError('invalid_request', problem, { details: { field } });
  }
  requireReach(call.caller, namespace);
  const context = new ToolContext(bench, call, namespace);
  return await context.files(sandbox, path, async (files, absolute) =>
    Buffer.from(await files.readFile(absolute, { maxBytes: MAX_BYTES }, call.signal)),
  );
}

/** @returns undefined when the file is not text */
function decode(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function codeOf({ code }: PlatformError): number {
  if (code === 'not_found' || code === 'sandbox_not_found') return RESOURCE_NOT_FOUND;
  return code === 'invalid_request' || code === 'forbidden' ? INVALID_PARAMS : INTERNAL_ERROR;
}
