// What is said about errors of the user's code. Loaded by node-driver.cjs, beside which it is handed to the interpreter as text.
'use strict';

// User code may replace what it sees; these stay.
const { JSON, Math, Number } = globalThis;
const { inspect, types } = require('util');

const MAX_FRAMES = 50;

function nameOf(reason) {
  try {
    if (types.isNativeError(reason)) return { name: `${reason.name}`, message: `${reason.message}` };
    return { name: 'Uncaught', message: inspect(reason) };
  } catch {
    return { name: 'Uncaught', message: '' };
  }
}

function describe(reason, details, unit) {
  try {
    const isError = types.isNativeError(reason);
    const place = isError && reason.name === 'SyntaxError' ? showPlace(details, unit) : '';
    return `${place}${isError ? '' : 'Uncaught '}${withoutOwnFrames(inspect(reason))}\n`;
  } catch {
    return 'Uncaught error (it cannot be shown)\n';
  }
}

/** In a stack, the first frame of ours and all below it are of no interest to the user. */
function withoutOwnFrames(text) {
  let kept = '';
  let isBelow = false;
  for (const line of text.split('\n')) {
    isBelow = /^\s+at (?:Session\.post \(|.*\[eval\])/.test(line) || (isBelow && /^\s+at /.test(line));
    if (!isBelow) kept += kept === '' ? line : `\n${line}`;
  }
  return kept;
}

/** Of a unit that could not be parsed: its error has no frame that says where. */
function showPlace(details, unit) {
  if (unit === undefined || details === undefined || details.scriptId === undefined) return '';
  const lines = unit.code.split('\n');
  const number = Math.min(details.lineNumber, lines.length - 1);
  const column = details.lineNumber > number ? lines[number].length : details.columnNumber;
  return `${unit.name}:${number + 1}\n${lines[number]}\n${' '.repeat(column)}^\n\n`;
}

/** Of the user's code, outermost first. */
function framesOf(traceback, details, unit) {
  const lines = unit.code.split('\n');
  const frames = [];
  for (const [, name = '', file, line] of traceback.matchAll(
    /^\s+at (?:(.*) \()?(cell-\d+):(\d+):\d+\)?$/gm,
  )) {
    const source = file === unit.name ? (lines[line - 1] || '').trim() : '';
    frames.unshift([file, Number(line), name || '<module>', source]);
  }
  if (frames.length === 0 && details !== undefined && details.scriptId !== undefined) {
    const line = Math.min(details.lineNumber, lines.length - 1);
    frames.push([unit.name, line + 1, '<module>', lines[line].trim()]);
  }
  return JSON.stringify(frames.slice(-MAX_FRAMES));
}

module.exports = { describe, framesOf, nameOf };
