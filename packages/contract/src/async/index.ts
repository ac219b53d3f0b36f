export { abortable, onAbort } from './abort.ts';
export { KeyedTurns, Turns } from './turns.ts';
