import type { FastifyInstance, FastifyRequest } from 'fastify';
import { refuseConnection } from './http-failure.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The body may take as long as it likes while it flows; whoever reads it limits the pauses. */
    isBodyStreamed?: (request: FastifyRequest) => boolean;
  }
}

/** Bodies arrive whole within this time, or the connection is refused. Node's own deadline would hit streamed ones too. */
export function limitBodyTime(server: FastifyInstance, timeoutMs: number): void {
  server.addHook('onRequest', (request, reply, done) => {
    if (hasBody(request) && request.routeOptions.config.isBodyStreamed?.(request) !== true) {
      const timer = setTimeout(() => refuseSlowBody(request), timeoutMs);
      timer.unref();
      reply.raw.once('close', () => clearTimeout(timer));
    }
    done();
  });
}

function hasBody({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function refuseSlowBody({ raw }: FastifyRequest): void {
  if (raw.complete) return;
  const error = Object.assign(new Error('the body did not arrive in time'), {
    code: 'ERR_HTTP_REQUEST_TIMEOUT',
  });
  refuseConnection(error, raw.socket);
  raw.socket.destroySoon();
}
