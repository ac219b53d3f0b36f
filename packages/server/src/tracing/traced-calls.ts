import { PlatformError } from '@svc/contract/errors';
import { activeSpan, SPAN_KIND, type Attributes } from './span.ts';

const ID = /^[0-9A-Za-z_-]{1,64}$/;

/**
 * A proxy of the object that records each call as a child of the active span: `engine.create`, with the id that the call is about.
 * Streams are passed on.
 */
export function tracedCalls<Target extends object>(target: Target): Target {
  return new Proxy(target, {
    get: (_target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function' || typeof name !== 'string') return member;
      return (...args: readonly unknown[]): unknown => {
        const span = activeSpan()?.child(`engine.${name}`, {
          kind: SPAN_KIND.client,
          attributes: idOf(args[0]),
        });
        const result: unknown = Reflect.apply(member, target, args);
        if (span === undefined || !(result instanceof Promise)) return result;
        result.then(
          () => span.end(),
          (error: unknown) => span.end(codeOf(error)),
        );
        return result;
      };
    },
  });
}

/** Only the error's code: a message may contain secrets. */
export function codeOf(error: unknown): string {
  return PlatformError.is(error) ? error.code : 'internal';
}

/** The id in the first argument of a call, which is an id or has one. */
function idOf(first: unknown): Attributes {
  const id = typeof first === 'object' && first !== null && 'id' in first ? first.id : first;
  return typeof id === 'string' && ID.test(id) ? { 'svc.id': id } : {};
}
