import type { CallOptions } from '../client/call-budget.ts';
import { requireKnownOptions, type OptionNames } from '../client/known-options.ts';
import { SvcError } from '../svc-error.ts';
import type { Commands } from './commands.ts';
import type { ExecResult } from './exec-result.ts';

export interface GitOptions extends CallOptions {
  /** Who runs git; the user of the sandbox unless given. */
  readonly user?: string;
}

/** A credential that the sandbox does not hold: git is given a placeholder, and the proxy sends the value to the hosts of the secret. */
export interface GitAuth {
  /** The variable of a secret of the sandbox, as in `Sandbox.create({ secrets: { GIT_TOKEN: … } })`. */
  readonly secret: string;
  /** `x-access-token` unless given, which goes with tokens of most hosts. */
  readonly username?: string;
}

const AUTH: OptionNames<GitAuth> = { secret: true, username: true };
const DEFAULT_USERNAME = 'x-access-token';
const MAX_REASON_LENGTH = 500;
const MAX_STDERR_LENGTH = 4096;
/** Nothing is asked for, and failures are told apart by git's own English. */
const ENVIRONMENT = { GIT_TERMINAL_PROMPT: '0', LC_ALL: 'C.UTF-8', LANGUAGE: '' };
const USERNAME_VARIABLE = 'SVC_GIT_USERNAME';

interface GitCall {
  /** Where the repository is; undefined for a clone. */
  readonly path?: string;
  /** Options of git itself, before the command. */
  readonly settings?: readonly string[];
  readonly args: readonly string[];
  readonly auth?: GitAuth;
}

/** Runs the git of a sandbox and explains its failures. No shell is involved. */
export class GitProgram {
  readonly #commands: Commands;
  readonly #image: () => unknown;

  constructor(commands: Commands, image: () => unknown) {
    this.#commands = commands;
    this.#image = image;
  }

  /** What it prints. @throws SvcError `git_missing`, `git_authentication_failed`, `not_a_repository`, `git_failed` */
  async run(command: string, { path, settings = [], args, auth }: GitCall, options: GitOptions) {
    const { user, signal, timeoutMs } = options;
    const credentials = auth === undefined ? null : credentialsOf(auth);
    const where = path === undefined ? [] : ['-C', requireText('path', path)];
    const words = [...where, ...settings, ...(credentials?.settings ?? []), command, ...args];
    const result = await this.#commands
      .run('git', words, {
        env: { ...ENVIRONMENT, ...credentials?.env },
        ...(user === undefined ? {} : { user }),
        ...(signal === undefined ? {} : { signal }),
        ...(timeoutMs === undefined ? {} : { timeoutMs }),
      })
      .catch((error: unknown) => Promise.reject(this.#explainMissing(error)));
    if (!result.isSuccess) throw explain(command, result, auth);
    if (result.truncated.includes('stdout'))
      throw new SvcError('git_failed', `git ${command} printed more than can be read: ask for less`);
    return result.text();
  }

  #explainMissing(error: unknown): unknown {
    if (!SvcError.is(error, 'exec_failed') || error.details?.['kind'] !== 'not_found') return error;
    const image = this.#image();
    const place = typeof image === 'string' ? `the image '${image}'` : 'what the sandbox was made from';
    const message = `git is not in ${place}: install it there with 'apt-get install -y git' or 'apk add git', or use an image that has it, such as svc/python`;
    return new SvcError('git_missing', message, { details: error.details, cause: error });
  }
}

/**
 * SAFETY: git asks this helper only after a host has answered 401, and keeps nothing of it. What the variable holds is read inside,
 * so the placeholder is in no argument and in no file.
 */
function credentialsOf(auth: GitAuth) {
  requireKnownOptions(auth, AUTH);
  const { secret, username = DEFAULT_USERNAME } = auth;
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(secret))
    throw invalid('auth.secret', 'is the name of a variable: letters, digits and _');
  if (!/^[^\0\r\n]+$/.test(username)) throw invalid('auth.username', 'is one line of text');
  const helper = `!f() { test "$1" = get || exit 0; test -n "$${secret}" || { echo quit=1; exit 0; }; printf 'username=%s\\npassword=%s\\n' "$${USERNAME_VARIABLE}" "$${secret}"; }; f`;
  return {
    // The empty one forgets helpers that would keep what they are told.
    settings: ['-c', 'credential.helper=', '-c', `credential.helper=${helper}`],
    env: { [USERNAME_VARIABLE]: username },
  };
}

function explain(command: string, result: ExecResult, auth: GitAuth | undefined): SvcError {
  const said = result.errorText();
  const details = { command, exit_code: result.code, stderr: said.slice(0, MAX_STDERR_LENGTH) };
  if (auth !== undefined && said.includes('told us to quit')) {
    const message = `The sandbox has no secret '${auth.secret}': name it in secrets of Sandbox.create or of network.update`;
    return new SvcError('invalid_request', message, { details: { ...details, field: 'auth.secret' } });
  }
  if (/tell me who you are|empty ident name|no email was given/i.test(said)) {
    const message = 'git knows no author: give author: { name, email }';
    return new SvcError('invalid_request', message, { details: { ...details, field: 'author' } });
  }
  const reason = reasonOf(result);
  if (AUTHENTICATION.test(said)) {
    const remedy =
      auth === undefined
        ? 'give auth: { secret } with a secret of the sandbox that is for this host'
        : `check the value of the secret '${auth.secret}' and its hosts`;
    return new SvcError('git_authentication_failed', `git ${command}: ${reason}; ${remedy}`, { details });
  }
  const code = NO_REPOSITORY.test(said) ? 'not_a_repository' : 'git_failed';
  return new SvcError(code, `git ${command}: ${reason}`, { details });
}

const AUTHENTICATION =
  /Authentication failed|could not read (?:Username|Password)|Permission denied \(|Host key verification failed|returned error: 40[13]/;
const NO_REPOSITORY =
  /not a git repository|fatal: cannot change to '|does not appear to be a git repository|fatal: repository '.*' (?:does not exist|not found)/;

/** The line that says why. */
function reasonOf(result: ExecResult): string {
  const lines = `${result.text()}\n${result.errorText()}`.split('\n').filter((line) => line.trim() !== '');
  const line = lines.find((each) => /^(?:fatal|error|remote: error):/.test(each)) ?? lines.at(-1);
  if (line !== undefined) return line.trim().slice(0, MAX_REASON_LENGTH);
  return result.signal === null ? `exit code ${result.code}` : `ended by signal ${result.signal}`;
}

export function requireText(field: string, value: string): string {
  if (typeof value !== 'string' || value === '' || value.includes('\0'))
    throw invalid(field, 'is a text that is not empty, without NUL characters');
  return value;
}

/** SAFETY: git would take what begins with a hyphen for an option, also where it knows no `--`. */
export function requireRevision(field: string, value: string): string {
  if (requireText(field, value).startsWith('-')) throw invalid(field, "does not begin with '-'");
  return value;
}

/** A branch or a remote: no revision, no pattern and no pair with a colon. */
export function requireName(field: string, value: string): string {
  requireRevision(field, value);
  // eslint-disable-next-line no-control-regex -- git refuses control characters in names
  if (/[\0-\x20\x7F~^:?*[\\]|\.\.|@\{|^\+|^HEAD$|^@$/.test(value))
    throw invalid(field, 'is a plain name, such as main or feature/search');
  return value;
}

/** @throws SvcError `invalid_request` for credentials in it, which git would write into the repository's settings */
export function requireUrl(url: string): string {
  requireRevision('url', url);
  if (/^https?:\/\/[^/?#]*@/i.test(url))
    throw invalid('url', 'holds no credentials: git would keep them in .git/config; give auth: { secret }');
  return url;
}

function invalid(field: string, rule: string): SvcError {
  return new SvcError('invalid_request', `${field} ${rule}`, { details: { field } });
}
