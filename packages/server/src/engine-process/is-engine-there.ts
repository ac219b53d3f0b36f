import { request } from '../process/node-http.ts';

const TIMEOUT_MS = 1000;

/** Whether an engine answers behind this socket. One that is of no use is not there; the one we start says what is wrong. */
export async function isEngineThere(socketPath: string): Promise<boolean> {
  return await new Promise((resolve) => {
    const asked = request(
      { socketPath, path: '/capabilities', signal: AbortSignal.timeout(TIMEOUT_MS) },
      (response) => {
        response.resume();
        resolve(response.statusCode === 200);
      },
    );
    asked.on('error', () => resolve(false));
    asked.end();
  });
}
