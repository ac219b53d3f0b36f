import { describe } from 'node:test';

/**
 * Several test files in one process, for those that take longer to load what they test than to test it. Each is a suite, so that its
 * hooks are its own. The variable names the files.
 */
const files = JSON.parse(process.env['SVC_TEST_GROUP'] ?? '[]') as readonly string[];
for (const file of files) {
  void describe(file, async () => {
    await import(file);
  });
}
