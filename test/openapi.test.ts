import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { describeOpenApi } from '../packages/contract/src/rest/index.ts';

test('the OpenAPI document has no fault that the linter knows', async () => {
  const config = await createConfig({
    extends: ['recommended'],
    // The paths are given: `by-name/{name}` beside `{sandbox_id}/start`. Ids are UUIDs, so no request fits both.
    rules: { 'no-ambiguous-paths': 'off' },
  });
  const problems = await lintFromString({ source: JSON.stringify(describeOpenApi()), config });
  assert.deepEqual(
    problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} at ${location[0]?.pointer}`),
    [],
  );
});

test('the linter finds a fault where there is one', async () => {
  const config = await createConfig({ extends: ['recommended'] });
  const broken = { ...describeOpenApi(), paths: { '/x': { get: { responses: {} } } } };
  assert.notEqual((await lintFromString({ source: JSON.stringify(broken), config })).length, 0);
});
