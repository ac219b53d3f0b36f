import type { FastifyInstance } from 'fastify';
import type { EngineHealth } from '../../orchestrator/engine-health.ts';
import { HEALTHY_MESSAGE } from '../../handlers/server/health.ts';

const HEALTHY = JSON.stringify({ message: HEALTHY_MESSAGE });

/** Asked for often and by machines: answered from what is known, without a call. */
export function registerHealth(server: FastifyInstance, health: EngineHealth): void {
  server.get('/api/v1/health', (_request, reply) => {
    const { current } = health;
    reply.header('content-type', 'application/json');
    if (current.isHealthy) return reply.send(HEALTHY);
    const message = `Service cannot run sandboxes: ${current.reason}`;
    return reply.code(503).send(JSON.stringify({ message }));
  });
}
