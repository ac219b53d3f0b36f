import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { encodeMessage } from '@svc/contract/frames';
import { readPreamble } from '../guest/preamble.ts';

/** Where `npm run build` puts svc-init. */
export const BUILT_SVC_INIT = fileURLToPath(new URL('../../../init/build/svc-init', import.meta.url));

/** A real svc-init for tests: PID 1 of its own pid namespace, otherwise on this host. */
export interface LocalInit extends AsyncDisposable {
  /** A session connection whose preamble was read. */
  dial(): Promise<Socket>;
}

export async function startLocalInit(): Promise<LocalInit> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-local-init-'));
  const token = randomBytes(32).toString('hex');
  const sessions: Socket[] = [];
  const waiting: ((socket: Socket) => void)[] = [];
  const control = Promise.withResolvers<Socket>();
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    socket.on('error', () => socket.destroy());
    readPreamble(socket).then(
      ({ kind }) => {
        if (kind === 'control') control.resolve(socket);
        else (waiting.shift() ?? ((each) => sessions.push(each)))(socket);
      },
      () => socket.destroy(),
    );
  });
  const path = join(folder, 'engine.sock');
  server.listen(path);
  await once(server, 'listening');
  const child = spawn('unshare', ['--pid', '--fork', '--kill-child', '--mount-proc', BUILT_SVC_INIT], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { SVC_SOCKET: path, SVC_TOKEN: token, SVC_PROFILE: 'none', PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
  });
  const controlSocket = await control.promise;
  controlSocket.resume();
  return {
    dial: async () => {
      controlSocket.write(encodeMessage(0, 'svc.dial', { count: 1 }));
      return sessions.shift() ?? (await new Promise<Socket>((resolve) => waiting.push(resolve)));
    },
    [Symbol.asyncDispose]: async () => {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
      server.close();
      controlSocket.destroy();
      await rm(folder, { recursive: true });
    },
  };
}
