// Runs units of JavaScript one after the other in one global scope, for a server outside of the sandbox.
//
// Started as `node -e <this text>` with the texts of the other node-….cjs as arguments. Works with Node 14 and later and needs no
// file of its own. What it speaks with the server is described in python-wire.py and python-results.py; here the marks wait
// in variables that no code of the user can name.
//
// Units are evaluated in the REPL mode of V8, reached through the inspector of this very thread: declarations stay, may be
// declared again, and `await` works at the top level.
(function () {
  'use strict';

  // User code may replace what it sees; these stay.
  const { Object, console, globalThis: global, process, setImmediate } = globalThis;
  const { Buffer } = require('buffer');
  const { Socket } = require('net');
  const { fstatSync, writeSync } = require('fs');
  const { Session } = require('inspector');
  const { Writable } = require('stream');
  const { inspect, types } = require('util');
  const { compileFunction, Script } = require('vm');

  const CONTROL_FD = 12;
  const MARK_BYTES = 16;
  const MAX_PIECE_BYTES = 4096 - MARK_BYTES - 4;
  const MORE = 0x80000000;
  const MAX_UNIT_BYTES = 64 * 1024 * 1024;
  /** In the length of a unit: options stand before its code, as JSON with a length of its own. */
  const HAS_OPTIONS = 2 ** 31;
  const MAX_TEXT_BYTES = 1024 * 1024;
  const NO_TEXT = Buffer.from([0xff, 0xff, 0xff, 0xff]);
  const STEP = 'svc.step';
  const RECEIVE = 'svc.receive';
  const SUCCESS = 's';
  const ERROR = 'e';
  const INTERRUPTED = 'i';

  /** Slept on when a child has made the pipe non-blocking and it is full. */
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  const wait = Atomics.wait.bind(Atomics);

  const { describe, framesOf, nameOf } = loadLast();
  const { bundleOf, createBudget, createDisplay, encodeResult } = loadLast();
  const { IMPORT, reachImports } = loadLast();

  const pipes = { 1: identity(1), 2: identity(2) };
  const streams = {};
  let unit;
  let count = 0;

  /** User code finds no argument of ours. */
  function loadLast() {
    const loaded = { exports: {} };
    compileFunction(process.argv.pop(), ['module', 'require'])(loaded, require);
    return loaded.exports;
  }

  // --- standard streams ---

  /** Written at once, so that nothing is lost when the process ends, and nothing piles up while user code loops. */
  function writeAll(fd, data) {
    for (let start = 0; start < data.length;) {
      try {
        start += writeSync(fd, data, start, data.length - start);
      } catch (error) {
        if (error.code !== 'EAGAIN') return error;
        wait(sleeper, 0, 0, 1);
      }
    }
    return null;
  }

  function createStream(fd) {
    const stream = new Writable({
      decodeStrings: true,
      write: (chunk, _encoding, done) => done(writeAll(fd, chunk)),
    });
    stream.on('error', () => undefined);
    stream.fd = fd;
    stream._type = 'pipe';
    return stream;
  }

  function restoreStreams() {
    for (const [fd, name] of [
      [1, 'stdout'],
      [2, 'stderr'],
    ]) {
      const known = streams[name];
      if (known !== undefined && !known.destroyed && !known.writableEnded && process[name] === known)
        continue;
      streams[name] =
        known === undefined || known.destroyed || known.writableEnded ? createStream(fd) : known;
      Object.defineProperty(process, name, {
        configurable: true,
        enumerable: true,
        writable: true,
        value: streams[name],
      });
      console[`_${name}`] = streams[name];
    }
  }

  function identity(fd) {
    try {
      const { dev, ino } = fstatSync(fd);
      return `${dev}:${ino}`;
    } catch {
      return null;
    }
  }

  // --- units ---

  function begin(code, { env = {}, quiet = false }, firstMark, mark) {
    count += 1;
    const shownMark = Buffer.from(firstMark.map((byte) => byte ^ 0xff));
    const name = `cell-${count}`;
    unit = {
      code,
      mark,
      shownMark,
      budget: createBudget(),
      name,
      number: count,
      status: SUCCESS,
      isOver: false,
    };
    unit.isQuiet = quiet;
    unit.before = setVariables(env);
    // User code may have removed them.
    process.removeListener('SIGINT', onInterrupt);
    process.on('SIGINT', onInterrupt);
    restoreStreams();
    for (const fd of [1, 2]) writeAll(fd, firstMark);
    const mine = unit;
    try {
      // Sync code, and what follows a first await of something that is ready, can be interrupted in here.
      guardedStep.runInThisContext({ breakOnSigint: true, displayErrors: false });
    } catch (error) {
      if (error !== null && typeof error === 'object' && error.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED')
        end(mine, INTERRUPTED);
      else onUncaught(error);
    }
  }

  /** Of the environment; null removes one. Returns what they were. */
  function setVariables(variables) {
    const before = {};
    for (const [name, value] of Object.entries(variables)) {
      before[name] = process.env[name] ?? null;
      if (value === null) delete process.env[name];
      else process.env[name] = value;
    }
    return before;
  }

  function step() {
    const mine = unit;
    const expression = `${reachImports(mine.code)}\n//# sourceURL=${mine.name}`;
    post('Runtime.evaluate', { expression, replMode: true, objectGroup: 'unit' }, (failure, answer) => {
      if (mine.isOver) return;
      if (failure) mine.failure = failure;
      else settle(mine, answer);
    });
    process._tickCallback();
    // A failure that was no interruption: the guard would have thrown.
    if (mine.failure && !mine.isOver) {
      printError(`${mine.failure.message}\n`);
      end(mine, ERROR);
    }
  }

  function settle(mine, { result, exceptionDetails: details }) {
    take(details === undefined ? result : details.exception, (value) => {
      if (details !== undefined) return fail(mine, value, details);
      if (!types.isPromise(value)) return succeed(mine, value);
      void follow(mine, value);
    });
  }

  /** The work behind a last promise belongs to the unit, and so does what it prints. */
  async function follow(mine, promise) {
    try {
      const value = await promise;
      succeed(mine, value === undefined ? undefined : promise);
    } catch (reason) {
      fail(mine, reason);
    }
  }

  function succeed(mine, value) {
    if (mine.isOver) return;
    if (value !== undefined) {
      try {
        mine.shown = inspect(value);
        if (!mine.isQuiet) writeAll(1, Buffer.from(`${mine.shown}\n`));
        sendResult(bundleOf(value, mine.shown), true);
      } catch (error) {
        return fail(mine, error);
      }
    }
    // Unhandled rejections are reported before the next turn of the event loop.
    setImmediate(end, mine, SUCCESS);
  }

  function fail(mine, reason, details) {
    if (mine.isOver) return;
    report(reason, details);
    setImmediate(end, mine, ERROR);
  }

  function end(mine, status) {
    if (mine.isOver) return;
    mine.isOver = true;
    unit = undefined;
    setVariables(mine.before);
    let lost = 0;
    for (const fd of [1, 2]) if (identity(fd) !== pipes[fd]) lost |= fd;
    if (lost === 3) process.reallyExit(70);
    if (status === INTERRUPTED) reconnect();
    else post('Runtime.releaseObjectGroup', { objectGroup: 'unit' });
    const final = status === SUCCESS ? mine.status : status;
    const { name, message, traceback, frames } = mine.exception || {};
    const head = Buffer.from([final.charCodeAt(0), lost]);
    const exception = [name, message, traceback, frames].map(encodeField);
    const number = encodeField(String(mine.number));
    answer(mine.mark, lost, Buffer.concat([head, encodeField(mine.shown), ...exception, number]));
    setImmediate(readUnits);
  }

  /** On stdout, unless that is lost; the other stream gets only its end. */
  function answer(mark, lost, data) {
    writePieces(lost & 1 ? 2 : 1, mark, data);
    if (lost === 0) writePiece(2, mark, Buffer.alloc(0), 0);
  }

  function writePieces(fd, mark, data) {
    let rest = data;
    for (; rest.length > MAX_PIECE_BYTES; rest = rest.subarray(MAX_PIECE_BYTES)) {
      writePiece(fd, mark, rest.subarray(0, MAX_PIECE_BYTES), MORE);
    }
    writePiece(fd, mark, rest, 0);
  }

  function writePiece(fd, mark, data, more) {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(data.length + more, 0);
    writeAll(fd, Buffer.concat([mark, length, data]));
  }

  /** What is shown between units, by callbacks that go on, is printed only. */
  function sendResult(bundle, isMain) {
    if (unit === undefined) return;
    const data = encodeResult(unit.budget, bundle, isMain);
    if (data !== undefined) writePieces(1, unit.shownMark, data);
  }

  function show(value, said) {
    const text = said === undefined ? inspect(value) : said;
    if (text !== '') writeAll(1, Buffer.from(`${text}\n`));
    const bundle = bundleOf(value, text);
    if (text === '') delete bundle.data['text/plain'];
    sendResult(bundle, false);
  }

  function onInterrupt() {
    if (unit !== undefined) end(unit, INTERRUPTED);
  }

  function encodeField(text) {
    if (text === undefined) return NO_TEXT;
    const data = Buffer.from(text).subarray(0, MAX_TEXT_BYTES);
    const head = Buffer.alloc(4);
    head.writeUInt32BE(data.length, 0);
    return Buffer.concat([head, data]);
  }

  function onUncaught(error) {
    report(error);
    if (unit !== undefined) unit.status = ERROR;
  }

  // --- the inspector ---

  let session;
  let post;
  let receiver;

  function connect() {
    session = new Session();
    session.connect();
    post = session.post.bind(session);
    const evaluate = { expression: `this['${RECEIVE}']`, objectGroup: 'driver' };
    post('Runtime.evaluate', evaluate, (_failure, { result }) => {
      receiver = result.objectId;
    });
  }

  /**
   * What an interrupted unit waited for may become garbage. V8 would then answer its evaluation in the middle of the
   * collection, where no JavaScript may run, and the process would die of it; an answer to a session that is gone is not given.
   */
  function reconnect() {
    session.disconnect();
    connect();
  }

  // --- values and errors ---

  let receive;

  /** Hands over the value that the inspector speaks of. */
  function take(remote, use) {
    receive = use;
    const { objectId, unserializableValue, value } = remote;
    const argument = objectId ? { objectId } : unserializableValue ? { unserializableValue } : { value };
    const call = {
      functionDeclaration: 'function (value) { this(value) }',
      objectId: receiver,
      arguments: [argument],
    };
    post('Runtime.callFunctionOn', call, (failure) => {
      if (failure) use(undefined);
    });
  }

  /** Prints what the REPL would. The first thing that goes wrong is what ends the unit. */
  function report(reason, details) {
    const traceback = describe(reason, details, unit);
    printError(traceback);
    if (unit === undefined || unit.exception !== undefined) return;
    unit.exception = { ...nameOf(reason), traceback, frames: framesOf(traceback, details, unit) };
  }

  function printError(text) {
    writeAll(2, Buffer.from(text));
  }

  // --- the server ---

  let received = Buffer.alloc(0);

  function readUnits() {
    const HEAD_BYTES = 4 + MARK_BYTES;
    if (unit !== undefined || received.length < HEAD_BYTES) return;
    const told = received.readUInt32BE(0);
    const length = told % HAS_OPTIONS;
    if (length > MAX_UNIT_BYTES) process.reallyExit(1);
    const end = HEAD_BYTES + length;
    if (received.length < end + MARK_BYTES) return;
    const firstMark = Buffer.from(received.subarray(4, HEAD_BYTES));
    const codeAt = HEAD_BYTES + (told < HAS_OPTIONS ? 0 : 4 + received.readUInt32BE(HEAD_BYTES));
    const options = told < HAS_OPTIONS ? {} : JSON.parse(received.toString('utf8', HEAD_BYTES + 4, codeAt));
    const code = received.toString('utf8', codeAt, end);
    const mark = Buffer.from(received.subarray(end, end + MARK_BYTES));
    received = received.subarray(end + MARK_BYTES);
    begin(code, options, firstMark, mark);
  }

  function serve() {
    const control = new Socket({ fd: CONTROL_FD, readable: true, writable: false });
    control.on('data', (data) => {
      received = Buffer.concat([received, data]);
      readUnits();
    });
    const leave = () => process.reallyExit(0);
    control.on('close', leave);
    control.on('error', leave);
  }

  function exposeToUnits() {
    Object.defineProperty(global, STEP, { value: step });
    // Resolves as it does for `node -e`: from the working directory.
    Object.defineProperty(global, IMPORT, { value: (specifier, options) => import(specifier, options) });
    Object.defineProperty(global, RECEIVE, { value: (value) => receive(value) });
    const display = { value: createDisplay(show), writable: true, configurable: true };
    Object.defineProperty(global, 'display', display);
  }

  const guardedStep = new Script(`this['${STEP}']()`, { filename: '[eval]' });

  process.on('uncaughtException', onUncaught);
  process.on('unhandledRejection', onUncaught);
  process.on('SIGINT', onInterrupt);
  exposeToUnits();
  connect();
  restoreStreams();
  serve();
  writeAll(1, Buffer.from('ready\n'));
})();
