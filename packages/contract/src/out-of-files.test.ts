import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PlatformError } from './errors.ts';
import { unavailableIfOutOfFiles } from './out-of-files.ts';

const emfile = Object.assign(new Error('open'), { code: 'EMFILE' });

test('a failure for want of open files is unavailable, also where a layer between took it for something else', () => {
  const suppressed = new SuppressedError(new Error('undo'), new Error('first', { cause: emfile }));
  for (const error of [
    emfile,
    Object.assign(new Error('table of the host'), { code: 'ENFILE' }),
    new PlatformError('start_failed', 'The runtime did not start', { cause: emfile }),
    new AggregateError([new Error('one'), emfile]),
    suppressed,
  ])
    assert.ok(PlatformError.is(unavailableIfOutOfFiles(error), 'unavailable'), error.message);
});

test('every other failure stays what it is, also one that is its own cause', () => {
  const circle = new Error('circle');
  circle.cause = circle;
  for (const error of [new PlatformError('not_found', 'gone'), circle, 'text', undefined])
    assert.equal(unavailableIfOutOfFiles(error), error);
});
