import { describeOpenApi } from '@svc/contract/rest';
import type { FastifyInstance } from 'fastify';
import { renderReference } from './render-reference.ts';

/** The control plane's document, and a page to browse it. Made when first asked for; it cannot change while we run. */
export function registerDocs(server: FastifyInstance): void {
  let document: string | undefined;
  let page: string | undefined;
  server.get('/openapi.json', (_request, reply) => {
    document ??= JSON.stringify(describeOpenApi());
    return reply.header('content-type', 'application/json').send(document);
  });
  server.get('/docs', (_request, reply) => {
    page ??= renderReference();
    return (
      reply
        .header('content-type', 'text/html; charset=utf-8')
        // The page is text and style; its one script filters the list.
        .header(
          'content-security-policy',
          "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'",
        )
        .send(page)
    );
  });
}
