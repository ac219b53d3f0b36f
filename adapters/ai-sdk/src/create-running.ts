import { Sandbox, SvcError, type Client, type CreateSandboxOptions } from '@svc/sdk';

/** A sandbox that runs; of one that was made and does not start nothing is left. */
export async function createRunning(
  options: CreateSandboxOptions & { readonly client: Client },
): Promise<Sandbox> {
  try {
    return await Sandbox.create(options);
  } catch (error) {
    const id = SvcError.is(error) ? error.details?.['sandbox_id'] : undefined;
    if (typeof id === 'string') await options.client.call('sandboxes.remove', { params: { sandbox_id: id } });
    throw error;
  }
}
