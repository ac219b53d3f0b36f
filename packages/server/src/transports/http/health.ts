import type { FastifyInstance } from 'fastify';
import { HEALTHY_MESSAGE, unhealthyMessage, type ServiceProblem } from '../../handlers/server/health.ts';

const HEALTHY = JSON.stringify({ message: HEALTHY_MESSAGE });

/** The health endpoint. Polled often by machines, so it answers from cached state. */
export function registerHealth(server: FastifyInstance, problem: ServiceProblem): void {
  server.get('/api/v1/health', (_request, reply) => {
    const reason = problem();
    reply.header('content-type', 'application/json');
    if (reason === null) return reply.send(HEALTHY);
    return reply.code(503).send(JSON.stringify({ message: unhealthyMessage(reason) }));
  });
}
