import { pino } from 'pino';
import { readConfig } from '../packages/server/src/config.ts';
import { startWeb } from '../packages/server/src/web.ts';

/** The web-facing process alone, as a child of the benchmark: without an engine, so only calls that need none are measured. */
const web = await startWeb(readConfig(process.argv.slice(2), {}), pino({ level: 'silent' }));
process.send?.(web.url);
process.once('disconnect', () => void web.close().then(() => process.exit(0)));
