import type { Server } from '@modelcontextprotocol/sdk/server/index.js';
import {
  CompleteRequestSchema,
  ErrorCode,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  McpError,
  ReadResourceRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
  type ReadResourceResult,
} from '@modelcontextprotocol/sdk/types.js';
import { PNG } from './content.ts';

const RESOURCES: Readonly<Record<string, ReadResourceResult['contents'][number]>> = {
  'test://static-text': {
    uri: 'test://static-text',
    mimeType: 'text/plain',
    text: 'This is the content of the static text resource.',
  },
  'test://static-binary': { uri: 'test://static-binary', mimeType: 'image/png', blob: PNG },
  'test://watched-resource': { uri: 'test://watched-resource', mimeType: 'text/plain', text: 'Watched.' },
};
const TEMPLATE = 'test://template/{id}/data';

export function serveFixtureResources(server: Server): void {
  const subscriptions = new Set<string>();
  server.setRequestHandler(ListResourcesRequestSchema, () => ({
    resources: Object.values(RESOURCES).map(({ uri, mimeType }) => ({
      uri,
      name: uri.replace('test://', ''),
      description: 'For conformance tests',
      ...(mimeType === undefined ? {} : { mimeType }),
    })),
  }));
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: [
      {
        uriTemplate: TEMPLATE,
        name: 'template',
        description: 'For conformance tests',
        mimeType: 'application/json',
      },
    ],
  }));
  server.setRequestHandler(ReadResourceRequestSchema, ({ params }) => ({ contents: [read(params.uri)] }));
  server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
    subscriptions.add(params.uri);
    return {};
  });
  server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
    subscriptions.delete(params.uri);
    return {};
  });
  server.setRequestHandler(CompleteRequestSchema, () => ({
    completion: { values: [], total: 0, hasMore: false },
  }));
}

function read(uri: string): ReadResourceResult['contents'][number] {
  const known = Object.hasOwn(RESOURCES, uri) ? RESOURCES[uri] : undefined;
  if (known !== undefined) return known;
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  if (id === undefined) throw new McpError(ErrorCode.InvalidParams, `Resource ${uri} not found`);
  const data = { id, templateTest: true, data: `Data for ID: ${id}` };
  return { uri, mimeType: 'application/json', text: JSON.stringify(data) };
}
