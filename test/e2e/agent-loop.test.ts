import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { importPython } from '../engine/interpreter-images.ts';
import { TestServer } from './start-server.ts';

const EXAMPLE = resolve(import.meta.dirname, '../../examples/agent-loop/agent-loop.ts');
let server: TestServer;
before(async () => {
  server = await TestServer.start({ args: ['--dev'], engineArgs: ['--isolation', 'container'] });
  await importPython(server.engine);
});
after(() => server.destroy());

test("the example of an agent's loop mends its program, and finds its page", async () => {
  const env = { ...process.env, SVC_API_URL: server.url };
  const { stdout } = await promisify(execFile)(process.execPath, [EXAMPLE], { env });
  assert.match(
    stdout,
    /^attempt 1: fails: \w+Error: .*\nattempt 2: works: total 42\nmade: <h1>Total: 42<\/h1>\nserved: <h1>Total: 42<\/h1>\n$/,
  );
});
