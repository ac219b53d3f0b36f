import { Command } from 'commander';
import { createCommand as createCreate } from './webhook-create.ts';
import { createCommand as createDeliveries } from './webhook-deliveries.ts';
import { createCommand as createInspect } from './webhook-inspect.ts';
import { createCommand as createLs } from './webhook-ls.ts';
import { createCommand as createRedeliver } from './webhook-redeliver.ts';
import { createCommand as createRm } from './webhook-rm.ts';
import { createCommand as createRotate } from './webhook-rotate.ts';
import { createCommand as createTest } from './webhook-test.ts';
import { createCommand as createUpdate } from './webhook-update.ts';

export function createCommand(): Command {
  const webhook = new Command('webhook').description(
    'Addresses that are told of what happens in the organization, signed after Standard Webhooks.\n' +
      'Which events there are: docs/reference/events.md; how a receiver verifies them: docs/guides/webhooks.md',
  );
  const all = [createCreate, createLs, createInspect, createUpdate, createTest, createDeliveries];
  for (const create of [...all, createRedeliver, createRotate, createRm]) webhook.addCommand(create());
  return webhook;
}
