import assert from 'node:assert/strict';
import { test } from 'node:test';
import { languageOfPath } from './language-of-path.ts';

test('the end of a name says what a file is written in', () => {
  assert.equal(languageOfPath('/app/main.py'), 'python');
  assert.equal(languageOfPath('/app/MAIN.PY'), 'python');
  assert.equal(languageOfPath('/app/index.test.ts'), 'javascript');
  assert.equal(languageOfPath('/app/package.json'), 'json');
});

test('a file with an unknown extension is plain text', () => {
  for (const path of ['/etc/passwd', '/app.py/notes', '/a/py', '/a/x.constructor', '/'])
    assert.equal(languageOfPath(path), 'text', path);
});
