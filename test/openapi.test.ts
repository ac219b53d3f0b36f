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

test('reads that take a range name the answer with a part', () => {
  const { paths } = describeOpenApi() as { paths: Record<string, Record<string, { responses: object }>> };
  const read = paths['/v1/sandboxes/{sandbox_id}/files/content']?.['get'];
  assert.partialDeepStrictEqual(read?.responses, {
    200: { content: { 'application/octet-stream': {} } },
    206: { headers: { 'Content-Range': {} }, content: { 'application/octet-stream': {} } },
  });
  const ranged = Object.values(paths).flatMap((path) =>
    Object.values(path).filter(({ responses }) => '206' in responses),
  );
  // Below /v1 and below /v1/orgs/{slug}, and by a link.
  assert.equal(ranged.length, 3);
});
