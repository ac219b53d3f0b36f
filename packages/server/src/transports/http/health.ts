import type { FastifyInstance } from 'fastify';
import { HEALTHY_MESSAGE, unhealthyMessage, type ServiceProblem } from '../../handlers/server/health.ts';

const HEALTHY = JSON.stringify({ message: HEALTHY_MESSAGE });

/** Asked for often and by machines: answered from what is known, without a call. */
export function registerHealth(server: FastifyInstance, problem: ServiceProblem): void {
  server.get('/api/v1/health', (_request, reply) => {
    const reason = problem();
    reply.header('content-type', 'application/json');
    if (reason === null) return reply.send(HEALTHY);
    return reply.code(503).send(JSON.stringify({ message: unhealthyMessage(reason) }));
  });
}
