import assert from 'node:assert/strict';
import { test } from 'node:test';
import { editText } from './edit-text.ts';

const edit = (content: string, oldText: string, newText: string, isEvery = false) =>
  editText('/a', content, { oldText, newText, isEvery });

test('a text that occurs once is replaced, also with special characters', () => {
  assert.deepEqual(edit('one\ntwo\nthree\n', 'two\nth', '$& $1\n'), {
    text: 'one\n$& $1\nree\n',
    lines: [2],
  });
  assert.deepEqual(edit('a\r\nb', '\r\n', '\n').text, 'a\nb');
  assert.deepEqual(edit('x', 'x', '').text, '');
});

test('every occurrence is replaced when that is asked for, and the lines are those before the edit', () => {
  assert.deepEqual(edit('a\na\n\na', 'a', 'b\nb', true), { text: 'b\nb\nb\nb\n\nb\nb', lines: [1, 2, 4] });
});

test('the error for a missing or repeated text says what to do', () => {
  assert.throws(() => edit('one', 'two', 'x'), {
    code: 'invalid_request',
    message: 'old_text is not in /a; read it again with sandbox_read_file',
  });
  assert.throws(() => edit('if x:\n\treturn  1\n', '    return 1\n', 'x'), {
    message:
      'old_text is not in /a; line 2 is the same but for its white space: copy it as sandbox_read_file shows it',
  });
  assert.throws(() => edit('a\na', 'a', 'b'), {
    message:
      'old_text is in /a 2 times, at lines 1, 2; give more of the lines around the one that is meant, or set replace_all',
  });
  assert.throws(() => edit('a\n'.repeat(20), 'a', 'b'), {
    message: /at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and more;/,
  });
  assert.throws(() => edit('a', 'a', 'a'), { message: /nothing would change/ });
});
