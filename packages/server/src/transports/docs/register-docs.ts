import { createHash } from 'node:crypto';
import { describeOpenApi } from '@svc/contract/rest';
import type { FastifyInstance } from 'fastify';
import { REFERENCE_SCRIPT, REFERENCE_STYLE } from './reference-style.ts';
import { renderReference } from './render-reference.ts';

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
/**
 * The page consists of text, one style, and one script that filters the list; nothing else is loaded, run, sent or
 * framed.
 */
const POLICY = `default-src 'none'; style-src ${hashOf(REFERENCE_STYLE)}; script-src ${hashOf(REFERENCE_SCRIPT)}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

/**
 * The OpenAPI document of the control plane, and a page to browse it. Built on the first request and cached; both are
 * constant while the server runs.
 */
export function registerDocs(server: FastifyInstance): void {
  let document: string | undefined;
  let page: string | undefined;
  server.get('/openapi.json', (_request, reply) => {
    document ??= JSON.stringify(describeOpenApi());
    return reply.header('content-type', 'application/json').send(document);
  });
  server.get('/docs', (_request, reply) => {
    page ??= renderReference();
    return reply
      .header('content-type', 'text/html; charset=utf-8')
      .header('content-security-policy', POLICY)
      .send(page);
  });
}
