import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EditorState } from '@codemirror/state';
import { lineEndOf } from './line-end.ts';

test('a text that the editor takes in comes out as it was, with any ends of lines', () => {
  for (const doc of ['', 'a', 'a\nb\n', 'a\r\nb\r\n', 'a\r\nb\nc', 'a\rb', 'a\r\n\r\nb', '\ufeffa\n']) {
    const extensions = EditorState.lineSeparator.of(lineEndOf(doc));
    assert.equal(EditorState.create({ doc, extensions }).sliceDoc(), doc, JSON.stringify(doc));
  }
});

test('a new line ends like the others', () => {
  const doc = 'a\r\nb';
  const state = EditorState.create({ doc, extensions: EditorState.lineSeparator.of(lineEndOf(doc)) });
  const { state: after } = state.update(state.replaceSelection(state.lineBreak));
  assert.equal(after.sliceDoc(), '\r\na\r\nb');
});
