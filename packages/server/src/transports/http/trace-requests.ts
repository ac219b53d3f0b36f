import type { FastifyInstance, FastifyReply } from 'fastify';
import { activeSpan, type Span } from '../../tracing/span.ts';
import type { Tracer } from '../../tracing/tracer.ts';

/** Asked for by machines every few seconds. */
const UNTOLD = new Set(['/api/v1/health', '/metrics']);
const SANDBOX_ID = /^[0-9a-f-]{36}$/;

/** Makes each request a span that lasts until its answer was sent, or its connection is over; what is done for it is done in that span. */
export function traceRequests(server: FastifyInstance, tracer: Tracer): void {
  server.addHook('onRequest', (request, reply, done) => {
    const { method } = request;
    // The span is named by its route, because a URL may hold private values.
    const route = templateOf(request.routeOptions.url);
    const name = route === undefined ? method : `${method} ${route}`;
    const span =
      route !== undefined && UNTOLD.has(route)
        ? undefined
        : tracer.begin(name, request.headers['traceparent']);
    if (span === undefined) return done();
    span.note({ 'http.request.method': method, 'svc.request_id': request.id });
    if (route !== undefined) span.note({ 'http.route': route });
    const isUpgrade = request.headers.upgrade !== undefined;
    (isUpgrade ? request.raw.socket : reply.raw).once('close', () => end(span, reply, isUpgrade));
    span.run(done);
  });
}

/** The route as OpenAPI writes it: a trace store groups spans by name, and one route must not have two names. */
function templateOf(url: string | undefined): string | undefined {
  return url?.replaceAll(/:(\w+)/g, '{$1}');
}

/** For a transport that finds out itself what a request is about. */
export function nameRequest(name: string, route: string, sandboxId: string | undefined): void {
  const span = activeSpan();
  span?.rename(name);
  const isId = sandboxId !== undefined && SANDBOX_ID.test(sandboxId);
  span?.note({ 'http.route': route, ...(isId ? { 'svc.sandbox.id': sandboxId } : {}) });
}

/** A caller that went away before its answer is no failure of ours. */
function end(span: Span, { raw }: FastifyReply, isUpgrade: boolean): void {
  const status = isUpgrade && !raw.headersSent ? 101 : raw.statusCode;
  span.note({ 'http.response.status_code': status });
  span.end(status >= 500 ? String(status) : null);
}
