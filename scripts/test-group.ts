import { describe } from 'node:test';

/**
 * Runs several test files in one process, for files that take longer to load their modules than to test them. Each file is a suite,
 * which keeps its hooks separate. The variable names the files.
 */
const files = JSON.parse(process.env['SVC_TEST_GROUP'] ?? '[]') as readonly string[];
for (const file of files) {
  void describe(file, async () => {
    await import(file);
  });
}
