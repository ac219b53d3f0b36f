export { abortable, onAbort } from './abort.ts';
export { Notifier } from './notifier.ts';
export { FairSemaphore } from './fair-semaphore.ts';
export { settleAll } from './settle-all.ts';
export { KeyedMutex, Mutex } from './mutex.ts';
