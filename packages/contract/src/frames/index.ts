export { FRAME_HEAD_BYTES, GENERATION } from './envelope.ts';
export { FrameError } from './frame-error.ts';
export { FrameSplitter } from './frame-splitter.ts';
export { decodeMessage, encodeMessage, MAX_FRAME_BYTES, readFrameHead } from './frame.ts';
export type { Message, Payload } from './frame.ts';
export { flagsOf, isTerminal } from './message-types.ts';
