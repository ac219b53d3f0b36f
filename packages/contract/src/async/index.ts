export { abortable, onAbort } from './abort.ts';
export { Bell } from './bell.ts';
export { FairPlaces } from './fair-places.ts';
export { settleAll } from './settle-all.ts';
export { KeyedTurns, Turns } from './turns.ts';
