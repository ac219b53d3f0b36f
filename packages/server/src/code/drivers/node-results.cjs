// Values that code shows, as MIME bundles. Loaded by node-driver.cjs, beside which it is handed to the interpreter as text. Works
// with Node 14 and later. What is sent is described in python-results.py.
'use strict';

// User code may replace what it sees; these stay.
const { Array, JSON, Number, Object, String, Symbol, Uint8Array } = globalThis;
const { Buffer } = require('buffer');

const MAX_FORM_BYTES = 4 * 1024 * 1024;
const MAX_RESULTS_BYTES = 8 * 1024 * 1024;
const MAX_RESULTS = 256;
const MAX_SHOWN_TEXT = 1024 * 1024;
// What is walked through to find out whether it is JSON.
const MAX_NODES = 50_000;
const MAX_DEPTH = 32;
/** A method of this name returns the forms of its object by MIME type; other runtimes with a notebook know it too. */
const DISPLAY = Symbol.for('Jupyter.display');
const SIGNATURES = [
  ['image/png', Buffer.from([0x89, 0x50, 0x4e, 0x47])],
  ['image/jpeg', Buffer.from([0xff, 0xd8, 0xff])],
  ['image/gif', Buffer.from('GIF8')],
  ['application/pdf', Buffer.from('%PDF-')],
];

/** What is left for the results of one unit. */
function createBudget() {
  return { count: 0, left: MAX_RESULTS_BYTES };
}

/** The forms of a value, of which `text` is one; what fails is left out. */
function bundleOf(value, text) {
  const bundle = { data: { 'text/plain': text }, leftOut: [] };
  try {
    addForms(bundle.data, value);
  } catch (error) {
    leaveOut(bundle, 'text/html', null, 'failed', String(error));
  }
  return bundle;
}

function addForms(data, value) {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return;
  if (value instanceof Uint8Array) {
    const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    const [type] =
      SIGNATURES.find(([, signature]) => bytes.subarray(0, signature.length).equals(signature)) || [];
    if (type !== undefined) data[type] = bytes;
  } else if (typeof value[DISPLAY] === 'function') {
    const text = data['text/plain'];
    Object.assign(data, value[DISPLAY](), { 'text/plain': text });
  } else if (isJson(value)) {
    data['application/json'] = value;
  }
}

/** Plain objects and lists that mean the same as JSON, and are small enough to look. */
function isJson(value) {
  let level = [value];
  let nodes = 0;
  for (let depth = 0; depth < MAX_DEPTH; depth += 1) {
    const inner = [];
    for (const one of level) {
      nodes += 1;
      if (nodes > MAX_NODES || !isJsonNode(one)) return false;
      if (one !== null && typeof one === 'object') inner.push(...Object.values(one).slice(0, MAX_NODES));
    }
    if (inner.length === 0) return true;
    level = inner;
  }
  return false;
}

function isJsonNode(value) {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true;
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object') return false;
  const prototype = Object.getPrototypeOf(value);
  return (
    Array.isArray(value) ||
    ((prototype === null || prototype === Object.prototype) && typeof value.toJSON !== 'function')
  );
}

function leaveOut({ leftOut }, type, bytes, reason, detail = '') {
  leftOut.push({ type, bytes, reason, detail: detail.slice(0, 300) });
}

/** The bytes to send; undefined when there were too many already. */
function encodeResult(budget, bundle, isMain) {
  budget.count += 1;
  // One too many shows that there were more.
  if (budget.count > MAX_RESULTS + 1) return undefined;
  const forms = [];
  for (const [type, value] of Object.entries(bundle.data)) {
    try {
      forms.push([type, encodeForm(bundle, type, value)]);
    } catch (error) {
      leaveOut(bundle, type, null, 'invalid', String(error));
    }
  }
  const kept = [];
  for (const [type, form] of forms.sort(([, one], [, other]) => one.length - other.length)) {
    if (form.length > MAX_FORM_BYTES) leaveOut(bundle, type, form.length, 'too_large');
    else if (form.length > budget.left) leaveOut(bundle, type, form.length, 'too_many');
    else {
      budget.left -= form.length;
      kept.push(`${JSON.stringify(type)}:${form}`);
    }
  }
  const leftOut = JSON.stringify(bundle.leftOut.slice(0, 32));
  return Buffer.from(`{"data":{${kept.join()}},"main":${isMain},"left_out":${leftOut}}`);
}

function encodeForm(bundle, type, value) {
  if (value instanceof Uint8Array) {
    const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    return JSON.stringify(bytes.toString('base64'));
  }
  let form = value;
  if (type === 'text/plain' && typeof form === 'string' && form.length > MAX_SHOWN_TEXT) {
    const detail = `the first ${MAX_SHOWN_TEXT} characters are here`;
    leaveOut(bundle, type, form.length, 'too_large', detail);
    form = form.slice(0, MAX_SHOWN_TEXT);
  }
  const isJsonType = type === 'application/json' || type.endsWith('+json');
  if (!isJsonType && typeof form !== 'string') throw new TypeError('it is neither text nor bytes');
  const text = JSON.stringify(form);
  if (text === undefined) throw new TypeError('it is no JSON');
  return text;
}

/** The function `display`, with one for each form that text is made of. */
function createDisplay(show) {
  const display = (value, options) => {
    const isRaw = options && options.raw === true && value !== null && typeof value === 'object';
    show(isRaw ? { [DISPLAY]: () => value } : value, isRaw ? String(value['text/plain'] || '') : undefined);
  };
  const types = {
    html: 'text/html',
    json: 'application/json',
    latex: 'text/latex',
    markdown: 'text/markdown',
    png: 'image/png',
    svg: 'image/svg+xml',
  };
  for (const [name, type] of Object.entries(types)) {
    display[name] = (form) => display({ [type]: form }, { raw: true });
  }
  return display;
}

module.exports = { bundleOf, createBudget, createDisplay, encodeResult };
