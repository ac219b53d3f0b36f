import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { CLASSES, startSandbox } from '../engine/sandbox-fixture.ts';
import { TestEngine } from '../engine/start-engine.ts';

/** Two checklists of ways out of a container, as one would run them by hand. What each looks at: docs/internals/escape-checklists.md. */
let engine: TestEngine;
before(async () => {
  engine = await TestEngine.start();
});
after(() => engine.destroy());

for (const isolation of CLASSES) {
  for (const name of ['escape-checklist-1.sh', 'escape-checklist-2.sh']) {
    test(`${name} finds no way out of class ${isolation}`, async () => {
      const sandbox = await startSandbox(engine, isolation);
      await sandbox.put('/checklist', readFileSync(join(import.meta.dirname, name)), 0o755);
      const { stdout, code } = await sandbox.run({ cmd: '/bin/sh', args: ['/checklist', isolation] });
      assert.deepEqual({ stdout, code }, { stdout: '', code: 0 });
      await sandbox.remove();
    });
  }
}
