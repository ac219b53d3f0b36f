import type { RestInput, RestOperationName, RestOperations, RestOutput } from '@svc/contract/rest';
import type { Content } from './byte-content.ts';
import type { StreamEvent } from './server-events.ts';

/** The input of an operation: only the parts that it has; parts that may be empty may be left out. */
export type RestCallInput<Name extends RestOperationName> = Part<
  'params',
  RestInput<RestOperations[Name]>['params']
> &
  Part<'query', RestInput<RestOperations[Name]>['query']> &
  Part<'headers', RestInput<RestOperations[Name]>['headers']> &
  BodyPart<RestOperations[Name]['body'], RestInput<RestOperations[Name]>['body']>;

/** The output of an operation: JSON of its schema, a stream of bytes, or events. */
export type RestCallOutput<Name extends RestOperationName> = RestOperations[Name]['output'] extends 'bytes'
  ? AsyncIterable<Uint8Array>
  : RestOperations[Name]['output'] extends 'event-stream'
    ? AsyncIterable<StreamEvent>
    : RestOutput<RestOperations[Name]>;

type Part<Key extends string, Value> = object extends Value
  ? { readonly [K in Key]?: Value }
  : { readonly [K in Key]: Value };
type BodyPart<Body, Value> = Body extends null
  ? { readonly body?: undefined }
  : Body extends 'bytes'
    ? { readonly body: Content }
    : Part<'body', Value>;
