import type { FastifyInstance } from 'fastify';
import { findRunning } from './wire/admit-sandbox.ts';
import { E2bRefusal } from './wire/e2b-failure.ts';
import type { E2bParts } from './wire/e2b-parts.ts';
import { registerFiles } from './files/files.ts';
import { registerEnvdRpc } from './envd/register-rpc.ts';

/** What E2B's clients expect inside of a sandbox for processes and files. */
export function registerEnvd(scope: FastifyInstance, parts: E2bParts): void {
  registerFiles(scope, parts);
  registerEnvdRpc(scope, parts);
  scope.get('/health', { exposeHeadRoute: false }, async (request, reply) => {
    await findRunning(parts, request);
    return await reply.code(204).send();
  });
  scope.setNotFoundHandler((request) => {
    throw new E2bRefusal(
      404,
      `There is no ${request.method} ${request.originalUrl.split('?')[0]} in a sandbox`,
    );
  });
}
