export { abortable, onAbort } from './abort.ts';
export { Bell } from './bell.ts';
export { KeyedTurns, Turns } from './turns.ts';
