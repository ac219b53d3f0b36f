import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { accounts } from './accounts.ts';
import { accounting, PLANS } from './accounting.ts';
import { credentials } from './credentials.ts';
import { everyOperation, MAX_BODY_BYTES } from './every-operation.ts';
import { people } from './people.ts';
import { providers } from './providers.ts';
import { runOutcomes } from './run-outcomes.ts';
import { webhooks } from './webhooks.ts';

const folder = await mkdtemp(join(tmpdir(), 'svc-plans-'));
after(() => rm(folder, { recursive: true, force: true }));
const plans = join(folder, 'plans.json');
await writeFile(plans, JSON.stringify(PLANS));
// For the user that the server becomes.
await chmod(folder, 0o755);

runOutcomes(
  [people, accounts, providers, credentials, webhooks, accounting, everyOperation],
  ['--plans', plans, '--max-body-bytes', String(MAX_BODY_BYTES), '--allow-private-targets'],
);
