import { LANGUAGES, MAX_TIMEOUT_SECONDS, PlatformError, type CodeRunResult } from '@svc/contract';
import {
  MAX_ANSWERED_OUTPUT_LENGTH,
  type CodeAnswer,
  type CodeContext as ContextView,
  type CreateContextRequest,
  type RunCodeRequest,
  type ServerEvent,
  type EventType,
} from '@svc/contract/rest';
import type { CodeContext, CodeContexts, SandboxRun } from '../../code/code-contexts.ts';
import type { UnitOptions } from '../../code/interpreter.ts';
import { kernelOf, languageOfKernel, type Language } from '../../code/languages.ts';
import { runEvents, type RunEnd, type RunEvent } from '../../code/run-events.ts';
import { badField } from '../../dispatch/rest-dispatch.ts';
import { auditedCommand } from '../../processes/shown-command.ts';
import { findOpenRun } from '../../store/processes.ts';
import type { SandboxRecord } from '../../store/sandboxes.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import type { Database } from '../../store/database.ts';
import type { CodeRunner } from '../../code/code-runner.ts';
import { requireSandbox } from '../sandboxes/rest-sandboxes.ts';

type CodeHandlers = Pick<RestHandlers, Extract<keyof RestHandlers, `code.${string}` | `contexts.${string}`>>;

interface ContextParams {
  readonly sandbox_id: string;
  readonly context_id: string;
}

const LONGEST_RUN_MS = MAX_TIMEOUT_SECONDS * 1000;

export interface CodeParts {
  readonly database: Database;
  /** Runs code without a context. */
  readonly codeRunner: CodeRunner;
  readonly codeContexts: CodeContexts;
}

export function codeHandlers(parts: CodeParts): CodeHandlers {
  const { database, codeContexts } = parts;
  return {
    'code.run': async ({ params, body }, call) =>
      await collect(await runCode(parts, call, params.sandbox_id, body)),
    'code.stream': async ({ params, body }, call) =>
      toServerEvents(await runCode(parts, call, params.sandbox_id, body)),
    'contexts.create': ({ params, body }, call) => createContext(parts, call, params.sandbox_id, body),
    'contexts.list': async ({ params }, call) => {
      const sandbox = await requireSandbox(database, call, { id: params.sandbox_id });
      const run = await findOpenRun(database, sandbox.id);
      if (run === undefined) return [];
      const place = { sandboxId: sandbox.id, runId: run.id };
      const busy = await codeContexts.listBusy(place);
      return (await codeContexts.list(place)).map((context) => viewContext(context, busy));
    },
    'contexts.get': async ({ params }, call) =>
      await view(parts, (await requireContext(parts, call, params)).context),
    'contexts.interrupt': async ({ params }, call) =>
      await changeContext(parts, call, params, 'code_context_interrupted', async (context) => {
        await context.interrupt(call.signal);
        return await view(parts, context);
      }),
    'contexts.restart': async ({ params }, call) =>
      await changeContext(parts, call, params, 'code_context_restarted', async (context) => {
        await context.restart(call.signal);
        return await view(parts, context);
      }),
    'contexts.remove': async ({ params }, call) =>
      await changeContext(parts, call, params, 'code_context_removed', async (context) => {
        await codeContexts.remove(context);
        return { message: `Code context ${context.spec.name ?? context.id} was removed` };
      }),
  };
}

/** Begins the run after the request was validated completely. */
async function runCode(
  parts: CodeParts,
  call: RestCall,
  sandboxId: string,
  body: RunCodeRequest,
): Promise<AsyncIterable<RunEvent>> {
  const { sandbox, run } = await requireRun(parts, call, sandboxId);
  const context =
    typeof body.context === 'string' ? await parts.codeContexts.require(run, body.context) : undefined;
  const language = languageOf(body, context);
  const options = unitOptions(body, language);
  const payload = {
    ...describe(sandbox, context),
    ...shownLanguage(language),
    code: auditedCommand([body.code]),
  };
  await call.note({ type: 'exec_started', category: 'exec', payload });
  const { code, timeout_ms: timeoutMs } = body;
  const request = { code, options, timeoutMs: timeoutMs ?? LONGEST_RUN_MS, work: call.work };
  return runEvents((listener) =>
    context === undefined
      ? parts.codeRunner.run({ sandboxId: sandbox.id, language, ...request, listener }, call.signal)
      : context.run({ ...request, listener }, call.signal),
  );
}

/** Undefined: nothing but what is usual. */
function unitOptions(
  { env, print_result: isPrinted = true }: RunCodeRequest,
  language: Language,
): UnitOptions | undefined {
  if (env !== undefined && kernelOf(language) !== undefined)
    throw badField('env', 'is not for code of a kernel; set it in the code itself, or for a context');
  if (env === undefined && isPrinted) return undefined;
  return { ...(env === undefined ? {} : { env }), ...(isPrinted ? {} : { quiet: true }) };
}

function languageOf(body: RunCodeRequest, context: CodeContext | undefined): Language {
  const asked = askedLanguage(body);
  if (context === undefined) return asked ?? refuseNone('must be given, unless kernel or context is');
  const { language } = context.spec;
  if (asked !== undefined && asked !== language) {
    const { language: known, kernel } = shownLanguage(language);
    throw badField(
      typeof body.kernel === 'string' ? 'kernel' : 'language',
      `is ${kernel ?? known} in this context`,
    );
  }
  return language;
}

/** Undefined when neither was given. */
function askedLanguage({
  language,
  kernel,
}: Pick<RunCodeRequest, 'language' | 'kernel'>): Language | undefined {
  if (typeof kernel !== 'string') return language === undefined ? undefined : LANGUAGES[language];
  if (language !== undefined) throw badField('kernel', 'cannot be given together with language');
  return languageOfKernel(kernel);
}

function refuseNone(reason: string): never {
  throw badField('language', reason);
}

/** Collects the events into one answer, up to the limit. */
async function collect(events: AsyncIterable<RunEvent>): Promise<CodeAnswer> {
  const output = { stdout: '', stderr: '' };
  const results: CodeRunResult[] = [];
  let isCut = false;
  for await (const event of events) {
    if (event.kind === 'end') {
      return { ...viewEnd(event.end), ...output, results, truncated: event.end.truncated || isCut };
    }
    if (event.kind === 'result') {
      results.push(event.result);
      continue;
    }
    const room = MAX_ANSWERED_OUTPUT_LENGTH - output[event.kind].length;
    if (event.text.length > room) isCut = true;
    output[event.kind] += event.text.slice(0, room).toWellFormed();
  }
  throw new Error('the run ended without an end');
}

async function* toServerEvents(events: AsyncIterable<RunEvent>): AsyncGenerator<ServerEvent> {
  try {
    for await (const event of events) {
      if (event.kind === 'end') yield { event: 'end', data: viewEnd(event.end) };
      else if (event.kind === 'result') yield { event: 'result', data: event.result };
      else yield { event: event.kind, data: { text: event.text } };
    }
  } catch (error) {
    // The status is sent already: after a bug or a disconnect the stream ends as it is.
    if (!PlatformError.is(error)) throw error;
    const { code, message, details } = error;
    yield { event: 'error', data: { error: { code, message, details } } };
  }
}

function viewEnd({ status, result, exception, executionCount, truncated }: RunEnd) {
  const shown = exception && { ...exception, frames: [...exception.frames] };
  return { status, result, exception: shown, execution_count: executionCount, truncated };
}

async function createContext(
  parts: CodeParts,
  call: RestCall,
  sandboxId: string,
  body: CreateContextRequest,
): Promise<ContextView> {
  const { sandbox, run } = await requireRun(parts, call, sandboxId);
  const { cwd, env } = body;
  const place = {
    ...(typeof cwd === 'string' ? { cwd } : {}),
    ...(env === undefined ? {} : { env }),
  };
  const language = askedLanguage(body) ?? refuseNone('must be given, unless kernel is');
  const spec = { language, name: body.name ?? null, place };
  const context = await parts.codeContexts.create(run, spec, call.signal, call.work);
  try {
    const payload = { ...describe(sandbox, context), ...shownLanguage(spec.language) };
    await call.commit(
      ({ record }) => record({ type: 'code_context_created', category: 'exec', payload }),
      () => viewContext(context, NONE),
    );
  } catch (error) {
    await parts.codeContexts.remove(context);
    throw error;
  }
  return viewContext(context, NONE);
}

async function changeContext<T>(
  parts: CodeParts,
  call: RestCall,
  params: ContextParams,
  type: Extract<EventType, `code_context_${string}`>,
  change: (context: CodeContext) => Promise<T> | T,
): Promise<T> {
  const { sandbox, context } = await requireContext(parts, call, params);
  const answer = await change(context);
  const payload = describe(sandbox, context);
  await call.commit(
    ({ record }) => record({ type, category: 'exec', payload }),
    () => answer,
  );
  return answer;
}

async function requireContext(
  parts: CodeParts,
  call: RestCall,
  params: ContextParams,
): Promise<{ readonly sandbox: SandboxRecord; readonly context: CodeContext }> {
  const { sandbox, run } = await requireRun(parts, call, params.sandbox_id);
  return { sandbox, context: await parts.codeContexts.require(run, params.context_id) };
}

async function requireRun(
  { database }: CodeParts,
  call: RestCall,
  sandboxId: string,
): Promise<{ readonly sandbox: SandboxRecord; readonly run: SandboxRun }> {
  const sandbox = await requireSandbox(database, call, { id: sandboxId });
  const run = await findOpenRun(database, sandbox.id);
  if (run !== undefined) return { sandbox, run: { sandboxId: sandbox.id, runId: run.id } };
  const message = `Sandbox '${sandbox.name}' is ${sandbox.observed}; start it first`;
  throw new PlatformError('sandbox_not_running', message, { details: { state: sandbox.observed } });
}

function describe({ id, name }: SandboxRecord, context: CodeContext | undefined) {
  const { id: contextId = null, spec } = context ?? {};
  return { sandbox_id: id, sandbox_name: name, context_id: contextId, context_name: spec?.name ?? null };
}

const NONE: ReadonlySet<string> = new Set();

async function view({ codeContexts }: CodeParts, context: CodeContext): Promise<ContextView> {
  return viewContext(context, await codeContexts.listBusy(context.sandboxRun));
}

function viewContext({ id, spec, createdAt }: CodeContext, busy: ReadonlySet<string>): ContextView {
  return {
    id,
    name: spec.name,
    ...shownLanguage(spec.language),
    cwd: spec.place.cwd ?? null,
    status: busy.has(id) ? 'busy' : 'idle',
    created_at: createdAt,
  };
}

function shownLanguage(language: Language): Pick<ContextView, 'language' | 'kernel'> {
  const kernel = kernelOf(language) ?? null;
  if (kernel !== null) return { language: null, kernel };
  return { language: language === 'node' ? 'javascript' : 'python', kernel };
}
