import { Sandbox, SvcError, type Client } from '@svc/sdk';

/** Connects to a running sandbox. @throws SvcError that names it as the user typed it */
export async function connectRunning(name: string, client: Client): Promise<Sandbox> {
  const sandbox = await Sandbox.connect(name, { client });
  const { status } = sandbox;
  if (status === 'running') return sandbox;
  if (status === 'starting') await sandbox.waitForRunning();
  else throw new SvcError('sandbox_not_running', `Sandbox '${name}' is ${status}`, { details: { status } });
  return sandbox;
}
