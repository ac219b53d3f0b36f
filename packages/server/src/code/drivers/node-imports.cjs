// Loaded by node-driver.cjs, beside which it is handed to the interpreter as text. Works with Node 14 and later.
'use strict';

const { Script } = require('vm');

/** The function of the driver that loads modules. */
const IMPORT = '__svc_import__';
/** How V8 refuses an import statement: the place on the first line, the statement, and a mark below its first word. */
const REFUSED =
  /:(\d+)\n.*\n( *)\^+\s+SyntaxError: (?:Cannot use import statement|import declarations may only appear)/;
const STATEMENT =
  /import\b\s*(?:([^'"()]*?)\s*from\s*)?('[^'\n]*'|"[^"\n]*")(?:\s*with\s*(\{[^}]*\}))?\s*;?/y;
const COMMENT = /\/\/.*|\/\*[^]*?\*\//g;
/** A name that the statement declares, alone or before others; then others in braces, or all of them under one name. */
const CLAUSE = /^([\w$]*)\s*,?\s*(?:\{([^}]*)\}|\*\s*as\s+([\w$]+))?$/;

/**
 * V8 gives code of the inspector no way to load modules. `import … from` becomes a declaration of the same names, which stay
 * as others do, and import(…) a call of a function that has a way.
 */
function reachImports(code) {
  return reachCalls(reachStatements(code));
}

function reachStatements(code) {
  let reached = code;
  // Each turn takes the first statement that is left. Where it is, and that it is none in a string or a comment, V8 says.
  while (/\bimport\b/.test(reached)) {
    const place = placeOfRefused(reached);
    if (place === undefined) break;
    STATEMENT.lastIndex = place;
    const [statement, clause, name, attributes] = STATEMENT.exec(reached) || [];
    const declaration = statement && declare(clause, name, attributes);
    if (!declaration) break;
    // What comes after it stays on its line.
    const lines = '\n'.repeat(statement.split('\n').length - 1);
    reached = `${reached.slice(0, place)}${declaration};${lines}${reached.slice(place + statement.length)}`;
  }
  return reached;
}

function declare(clause, name, attributes) {
  const call = `await ${IMPORT}(${name}${attributes ? `, { with: ${attributes} }` : ''})`;
  // It has no value, as a last line of a unit neither.
  if (clause === undefined) return `void (${call})`;
  const [, first, list, all] = CLAUSE.exec(clause.replace(COMMENT, '').replace(/\s+/g, ' ').trim()) || [];
  if (first === undefined) return undefined;
  const named = list === undefined ? [] : [list.replace(/\s+as\s+/g, ': ').trim()];
  const names = [...(first ? [`default: ${first}`] : []), ...named].filter((part) => part !== '').join(', ');
  if (all === undefined) return `const { ${names} } = ${call}`;
  return first ? `const ${all} = ${call}, { ${names} } = ${all}` : `const ${all} = ${call}`;
}

/** Of the first import statement; undefined when there is none, or something else is wrong before it. */
function placeOfRefused(code) {
  const problem = problemOf(code);
  const [, line, indent] = REFUSED.exec((problem && problem.stack) || '') || [];
  if (line === undefined) return undefined;
  const before = code.split('\n').slice(0, Number(line) - 1);
  return (
    before.reduce((sum, text) => sum + text.length + 1, 0) + indent.length - (line === '1' ? HEAD.length : 0)
  );
}

/**
 * Whether such text is code or part of a string, comment or expression is found by breaking it: only code then fails to
 * compile.
 */
function reachCalls(code) {
  if (!/\bimport\s*\(/.test(code)) return code;
  let patched = '';
  let done = 0;
  for (const { index } of code.matchAll(/(?<![.\w$])import(?=\s*\()/g)) {
    const after = index + 'import'.length;
    if (problemOf(code) || !problemOf(`${code.slice(0, index)}\u0001${code.slice(after)}`)) continue;
    patched += code.slice(done, index) + IMPORT;
    done = after;
  }
  return patched + code.slice(done);
}

const HEAD = '(async () => {';

function problemOf(code) {
  try {
    void new Script(`${HEAD}${code}\n})`);
    return undefined;
  } catch (error) {
    return error;
  }
}

module.exports = { IMPORT, reachImports };
