import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

// SAFETY: compiled code is kept inside the checkout. Node's default lies in the shared temporary folder, where another user could
// place code that root would then run.
enableCompileCache(join(import.meta.dirname, '../../../node_modules/.cache/svc'));
const { runCli } = await import('./run-cli.ts');
process.exit(await runCli(process.argv.slice(2)));
