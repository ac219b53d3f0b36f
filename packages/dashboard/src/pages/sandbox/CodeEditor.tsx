import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { bracketMatching, indentOnInput, syntaxHighlighting } from '@codemirror/language';
import { Compartment, EditorState, Prec, type Extension } from '@codemirror/state';
import {
  drawSelection,
  EditorView,
  highlightSpecialChars,
  keymap,
  lineNumbers,
  placeholder as placeholderOf,
} from '@codemirror/view';
import { classHighlighter } from '@lezer/highlight';
import { useEffect, useRef, useState } from 'react';
import { withAdoptedStyles } from './adopted-styles.ts';
import './code-editor.css';
import { supportOf, type CodeLanguage } from './code-language.ts';
import { lineEndOf } from './line-end.ts';

interface CodeEditorProps {
  /** The accessible name of the content. */
  readonly label: string;
  /** The id of the element with a description. */
  readonly describedBy?: string;
  /** The initial content. */
  readonly text: string;
  readonly language: CodeLanguage;
  readonly placeholder?: string;
  readonly onChange: (text: string) => void;
  readonly onRun?: () => void;
}

/** A code editor with highlighting. Content is drawn as text; lines keep their original ends. */
export function CodeEditor({
  label,
  describedBy,
  text,
  language,
  placeholder = '',
  onChange,
  onRun,
}: CodeEditorProps) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const latest = useRef({ onChange, onRun });
  useEffect(() => {
    latest.current = { onChange, onRun };
  });
  const [ofLanguage] = useState(() => new Compartment());
  const [first] = useState({ text, label, describedBy });
  useEffect(() => {
    const parent = place.current;
    if (parent === null) return undefined;
    const extensions = [
      runKeys(() => latest.current.onRun),
      EDITING,
      EditorState.lineSeparator.of(lineEndOf(first.text)),
      EditorView.contentAttributes.of({
        'aria-label': first.label,
        ...(first.describedBy === undefined ? {} : { 'aria-describedby': first.describedBy }),
      }),
      EditorView.updateListener.of(({ docChanged, state }) => {
        if (docChanged) latest.current.onChange(state.sliceDoc());
      }),
      ofLanguage.of([]),
    ];
    withAdoptedStyles(() => {
      view.current = new EditorView({ parent, doc: first.text, extensions });
    });
    return () => view.current?.destroy();
  }, [first, ofLanguage]);
  useEffect(() => {
    const support = [supportOf(language), placeholderOf(placeholder)];
    view.current?.dispatch({ effects: ofLanguage.reconfigure(support) });
  }, [language, placeholder, ofLanguage]);
  return <div className="code-editor" ref={place} />;
}

/** Chromium adds an inline style to text that replaces a selection, which the content security policy refuses. */
const REPLACING = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { data, inputType } = event;
    if (inputType !== 'insertText' || data === null || view.composing) return false;
    if (view.state.selection.main.empty) return false;
    view.dispatch(view.state.replaceSelection(data), { userEvent: 'input.type', scrollIntoView: true });
    event.preventDefault();
    return true;
  },
});

const EDITING: Extension = [
  REPLACING,
  lineNumbers(),
  highlightSpecialChars(),
  history(),
  drawSelection(),
  indentOnInput(),
  bracketMatching(),
  syntaxHighlighting(classHighlighter),
  EditorView.lineWrapping,
  keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
];

/** Before the key map of the editor, in which Ctrl-Enter begins a line. */
function runKeys(onRun: () => (() => void) | undefined): Extension {
  const run = (): boolean => {
    const start = onRun();
    start?.();
    return start !== undefined;
  };
  return Prec.high(
    keymap.of([
      { key: 'Ctrl-Enter', run },
      { key: 'Meta-Enter', run },
    ]),
  );
}
