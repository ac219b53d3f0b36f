import type { TestContext } from 'node:test';
import { accessSuite } from './access.suite.ts';
import { accountsSuite } from './accounts.suite.ts';
import { clocksSuite } from './clocks.suite.ts';
import type { Database } from './database.ts';
import { codeContextsSuite } from './code-contexts.suite.ts';
import { eventsSuite } from './events.suite.ts';
import { idempotencySuite } from './idempotency.suite.ts';
import { lookupsSuite } from './lookups.suite.ts';
import { organizationsSuite } from './organizations.suite.ts';
import { processesSuite } from './processes.suite.ts';
import { quotasSuite } from './quotas.suite.ts';
import { sandboxesSuite } from './sandboxes.suite.ts';
import { snapshotSuite } from './snapshots.suite.ts';
import { storeSuite } from './store.suite.ts';
import { usagePropertySuite } from './usage-property.suite.ts';
import { usageSuite } from './usage.suite.ts';
import { volumesSuite } from './volumes.suite.ts';
import { webhooksSuite } from './webhooks.suite.ts';

/**
 * All suites that a database has to pass. `open` prepares an empty store and returns a function that opens it, the
 * same one on each call.
 */
export function everySuite(name: string, open: (t: TestContext) => Promise<() => Promise<Database>>): void {
  const empty = async (t: TestContext) => await (await open(t))();
  sandboxesSuite(name, open);
  storeSuite(name, open);
  idempotencySuite(name, empty);
  organizationsSuite(name, empty);
  volumesSuite(name, empty);
  processesSuite(name, empty);
  codeContextsSuite(name, empty);
  eventsSuite(name, empty);
  usageSuite(name, empty);
  lookupsSuite(name, empty);
  clocksSuite(name, open);
  usagePropertySuite(name, empty);
  quotasSuite(name, empty);
  snapshotSuite(name, empty);
  accessSuite(name, empty);
  accountsSuite(name, empty);
  webhooksSuite(name, empty);
}
