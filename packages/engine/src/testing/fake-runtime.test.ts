import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { FakeRuntime } from './fake-runtime.ts';
import { runtimeSuite } from '../runtime/runtime.suite.ts';
import { SandboxFiles } from './sandbox-files.ts';

runtimeSuite('the fake', async () => {
  const files = await SandboxFiles.create();
  const folder = join(files.folder, 'runtime');
  return {
    open: () => new FakeRuntime(folder),
    spec: (changes) => files.spec(changes),
    leftovers: async ({ handle }) => (existsSync(join(folder, handle)) ? [handle] : []),
    defer: (cleanup) => files.defer(cleanup),
    close: () => files[Symbol.asyncDispose](),
  };
});
