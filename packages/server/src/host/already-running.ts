import { EXIT } from './exit-codes.ts';
import { StartError } from './start-error.ts';

export function alreadyRunning(dataFolder: string): StartError {
  return new StartError(
    EXIT.alreadyRunning,
    `a server runs already on ${dataFolder}; see: svc server status --path ${dataFolder}`,
  );
}
