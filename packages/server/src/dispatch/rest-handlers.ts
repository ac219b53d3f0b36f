import type { RestInput, RestOperationName, RestOperations, RestOutput } from '@svc/contract/rest';
import type { RestCall } from './rest-call.ts';

export type RestHandler<Name extends RestOperationName> = (
  input: RestInput<RestOperations[Name]>,
  call: RestCall,
) => Promise<RestOutput<RestOperations[Name]>>;

/** One handler per operation of the control plane: a missing one does not compile. */
export type RestHandlers = { readonly [Name in RestOperationName]: RestHandler<Name> };
