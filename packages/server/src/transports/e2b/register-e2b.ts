import type { FastifyInstance } from 'fastify';
import { GuestFiles } from '../../files/guest-files.ts';
import { FileTransfers } from '../../handlers/files/file-transfers.ts';
import type { Sealer } from '../../secrets/sealer.ts';
import { EventQueue } from '../channel/event-queue.ts';
import { registerCode } from './code/register-code.ts';
import { registerControl } from './control/register-control.ts';
import { E2B_PREFIX, type E2bSurface } from './wire/e2b-address.ts';
import { sendE2bFailure } from './wire/e2b-failure.ts';
import type { E2bParts } from './wire/e2b-parts.ts';
import { registerEnvd } from './register-envd.ts';
import { ReaderChannels } from './wire/reader-channels.ts';
import { Watchers } from './wire/watchers.ts';
import { SandboxTokens } from './wire/sandbox-tokens.ts';

export interface E2bTransportParts extends Omit<
  E2bParts,
  'tokens' | 'events' | 'watchers' | 'readers' | 'files' | 'transfers'
> {
  readonly sealer: Sealer;
}

const SURFACES: Readonly<Record<E2bSurface, (scope: FastifyInstance, parts: E2bParts) => void>> = {
  control: registerControl,
  envd: registerEnvd,
  code: registerCode,
};

/** What E2B's published clients call, as a translation onto our own operations and the command channel. */
export function registerE2b(server: FastifyInstance, { sealer, ...given }: E2bTransportParts): void {
  const [events, watchers] = [new EventQueue(given.database), new Watchers()];
  const files = new GuestFiles(given.channels);
  const transfers = new FileTransfers(files);
  const readers = new ReaderChannels();
  const tokens = new SandboxTokens(sealer);
  const parts: E2bParts = { ...given, tokens, events, watchers, readers, files, transfers };
  for (const [surface, register] of Object.entries(SURFACES)) {
    void server.register(
      async (scope) => {
        scope.removeAllContentTypeParsers();
        // Routes read bodies themselves, after authentication.
        scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
        scope.setErrorHandler((error, request, reply) => sendE2bFailure(error, request, reply, parts.logger));
        register(scope, parts);
        await Promise.resolve();
      },
      { prefix: `${E2B_PREFIX}/${surface}` },
    );
  }
  server.addHook('preClose', async () => {
    watchers.close();
    readers.close();
    await events.close();
  });
}
