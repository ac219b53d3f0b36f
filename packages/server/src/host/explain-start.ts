import { PlatformError } from '@svc/contract/errors';
import { EXIT } from './exit-codes.ts';
import { StartError } from './start-error.ts';

/** The part of the configuration that explanations name. */
interface StartOptions {
  readonly options: { readonly host: string; readonly port: number };
  readonly databaseUrl: string | null;
}

/** An error of Node's system calls. */
type SystemError = NodeJS.ErrnoException & { readonly address?: string; readonly port?: number };

/** How an operator can fix a failed start; undefined when it is a bug of ours. `config`: as far as it was read. */
export function explainStart(error: unknown, config: StartOptions | undefined): StartError | undefined {
  if (error instanceof StartError) return error;
  if (!(error instanceof Error) || config === undefined) return undefined;
  const { options, databaseUrl } = config;
  if (databaseUrl !== null && PlatformError.is(error, 'unavailable'))
    return databaseProblem(error.cause instanceof Error ? error.cause : error);
  const { code, syscall, address = options.host, port = 0 }: SystemError = error;
  const cause = { cause: error };
  if (syscall === 'listen') {
    const option = port === options.port ? '--port' : '--ssh-port';
    const problem = LISTEN_PROBLEMS[code ?? '']?.(address, port, option);
    const exitCode = code === 'EADDRINUSE' ? EXIT.addressInUse : EXIT.failed;
    return problem === undefined ? undefined : new StartError(exitCode, problem, cause);
  }
  if (syscall === 'getaddrinfo' && 'hostname' in error && error.hostname === options.host) {
    return new StartError(
      EXIT.failed,
      `--host ${options.host} is a name that leads nowhere (${code})`,
      cause,
    );
  }
  return databaseUrl !== null && 'severity' in error ? databaseProblem(error) : undefined;
}

/** SAFETY: the driver's message about a refused connection names the user, never the password. */
function databaseProblem(cause: Error): StartError {
  const message = `the database of --database cannot be used: ${cause.message}`;
  return new StartError(EXIT.failed, message, { cause });
}

type Explain = (address: string, port: number, option: string) => string;

const LISTEN_PROBLEMS: Readonly<Record<string, Explain>> = {
  EADDRINUSE: (address, port, option) =>
    `another program listens on port ${port} of ${address}; stop it, or choose another port with ${option}`,
  EADDRNOTAVAIL: (address) => `${address} is no address of this machine; choose one of its own with --host`,
  EACCES: (_address, port, option) =>
    `port ${port} is for root alone, and the server does not listen as root; choose one above 1023 with ${option}`,
};
