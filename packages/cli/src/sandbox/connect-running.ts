import { Sandbox, SvcError, type Client } from '@svc/sdk';

/** A sandbox that something can be done in. @throws SvcError that calls it by the name that was typed */
export async function connectRunning(name: string, client: Client): Promise<Sandbox> {
  const sandbox = await Sandbox.connect(name, { client });
  const { status } = sandbox;
  if (status === 'running') return sandbox;
  if (status === 'starting') await sandbox.waitForRunning();
  else throw new SvcError('sandbox_not_running', `Sandbox '${name}' is ${status}`, { details: { status } });
  return sandbox;
}
